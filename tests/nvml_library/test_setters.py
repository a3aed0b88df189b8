"""Calls that change a device: whoever may not is told so, and only where the board has what would be changed."""

from __future__ import annotations

import struct

import pytest

from simnode.nvml.cells import BY_KEY
from simnode.nvml.exports import SETTERS
from simnode.state import Refusal, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import GPU_IS_LOST, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, SUCCESS, Scene


@pytest.mark.parametrize("name", sorted(SETTERS))
def test_a_setter_is_for_the_administrator_of_a_board_that_can(scene: Scene, name: str) -> None:
    key = SETTERS[name]
    value = 1 if BY_KEY[key].kind != "counter" else 0
    library = scene.start(node(runtime({key: value})))
    assert library.code(name, library.handle(), *[None] * 4) == NO_PERMISSION
    scene.publish(node(runtime({key: Refusal(NOT_SUPPORTED)})))
    assert library.code(name, library.handle(), *[None] * 4) == NOT_SUPPORTED


@pytest.mark.parametrize(
    "name",
    ["nvmlDeviceSetAutoBoostedClocksEnabled", "nvmlDeviceSetDriverModel", "nvmlDeviceSetTemperatureThreshold",
     "nvmlDeviceSetVirtualizationMode", "nvmlDeviceSetVgpuSchedulerState"],
)  # fmt: skip
def test_what_no_board_has_cannot_be_set(scene: Scene, name: str) -> None:
    library = scene.start(node(runtime()))
    assert library.code(name, library.handle(), *[None] * 4) == NOT_SUPPORTED


def pci(bus: int) -> bytes:
    """An nvmlPciInfo_t as nvidia-smi fills it: numbers only."""
    return bytes(16) + bytes(4) + bus.to_bytes(4, "little") + bytes(44)


def test_no_gpu_is_being_drained_and_nobody_may_drain_one(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    assert library.number("nvmlDeviceQueryDrainState", pci(0x10)) == 0
    assert library.code("nvmlDeviceQueryDrainState", pci(0x99), None) == NOT_FOUND
    for name in ("nvmlDeviceModifyDrainState", "nvmlDeviceRemoveGpu", "nvmlDeviceRemoveGpu_v2"):
        assert library.code(name, pci(0x10), 1, 1) == NO_PERMISSION
        assert library.code(name, pci(0x99), 1, 1) == NOT_FOUND
    assert library.code("nvmlDeviceDiscoverGpus", pci(0x10)) == NO_PERMISSION


def test_a_refused_setter_changes_nothing(scene: Scene) -> None:
    library = scene.start(node(runtime({"persistence_mode": 0})))
    assert library.code("nvmlDeviceSetPersistenceMode", library.handle(), 1) != SUCCESS
    assert library.number("nvmlDeviceGetPersistenceMode", library.handle()) == 0


@pytest.mark.parametrize("name", ["nvmlDeviceSetPowerManagementLimit_v2", "nvmlDeviceClearAccountingPids"])
@pytest.mark.parametrize("lost", [GPU_IS_LOST, 0])
def test_nobody_changes_a_lost_gpu(scene: Scene, name: str, lost: int) -> None:
    """What a GPU that is there answers to whoever may not change it, for comparison."""
    values: dict[str, Value] = {"power.min_limit_mw": 200_000, "power.max_limit_mw": 700_000, "accounting.mode": 0}
    library = scene.start(node(runtime(values)))
    handle = library.handle()
    scene.publish(node(runtime(values, lost=lost)))
    limit = struct.pack("<IIi", 0x0200000C, 0, 500_000)
    assert library.code(name, handle, limit) == (lost or NO_PERMISSION)
