"""Structs: their tags, their layouts by age, and that not a byte behind them is touched."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import ProcessSpec, Refusal, Value
from tests.nvml.nodes import device, node, runtime
from tests.nvml_library.conftest import (
    INSUFFICIENT_SIZE,
    SUCCESS,
    WRONG_TAG,
    Scene,
    filled,
    one,
)

MEMORY: dict[str, Value] = {"memory.total_bytes": 1000, "memory.reserved_bytes": 300, "memory.used_bytes": 200}


def test_memory_counts_what_is_reserved_as_used_in_its_first_layout_only(scene: Scene) -> None:
    library = scene.start(one(MEMORY))
    assert struct.unpack("<QQQ", filled(library, "nvmlDeviceGetMemoryInfo", 24)) == (1000, 500, 500)
    assert struct.unpack("<4xxxxxQQQQ", filled(library, "nvmlDeviceGetMemoryInfo_v2", 40, 0x02000028)) == (
        1000, 300, 500, 200,
    )  # fmt: skip


def test_bar1_memory_is_total_free_used(scene: Scene) -> None:
    library = scene.start(one({"bar1_memory.total_bytes": 1 << 37, "bar1_memory.used_bytes": 1 << 20}))
    read = struct.unpack("<QQQ", filled(library, "nvmlDeviceGetBAR1MemoryInfo", 24))
    assert read == (1 << 37, (1 << 37) - (1 << 20), 1 << 20)


TAGGED: list[tuple[str, int, int, dict[str, Value]]] = [
    ("nvmlDeviceGetMemoryInfo_v2", 40, 2, MEMORY),
    ("nvmlDeviceGetPciInfoExt", 64, 1, {}),
    ("nvmlDeviceGetTemperatureV", 12, 1, {"thermal.temperature_gpu_c": 30}),
    ("nvmlDeviceGetMarginTemperature", 8, 1, {"thermal.temperature_gpu_c": 30, "thermal.tlimit.reference_c": 87}),
    ("nvmlDeviceGetSramEccErrorStatus", 104, 1, {"ecc.mode_current": 1}),
    ("nvmlDeviceGetGpuFabricInfoV", 36, 2, {"fabric.state": 3}),
    ("nvmlDeviceGetGpuFabricInfoV", 40, 3, {"fabric.state": 3}),
    ("nvmlDeviceGetPlatformInfo", 44, 1, {"platform.chassis_serial_number": "x", "platform.host_id": 1}),
    ("nvmlDeviceGetPlatformInfo", 44, 2, {"platform.chassis_serial_number": "x", "platform.host_id": 1}),
    ("nvmlDeviceGetPdi", 16, 1, {"pdi": 1}),
    ("nvmlDeviceGetAddressingMode", 8, 1, {"addressing_mode": 1}),
    ("nvmlDeviceGetCapabilities", 8, 1, {}),
    ("nvmlDeviceGetRepairStatus", 12, 1, {"repair.channel_pending": 0, "repair.tpc_pending": 0}),
    ("nvmlDeviceGetRunningProcessDetailList", 24, 1, {}),
    ("nvmlDeviceGetDramEncryptionMode", 8, 1, {"dram_encryption.mode_current": 0, "dram_encryption.mode_pending": 0}),
    (
        "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", 100, 1,
        {"power_profiles.requested": 1, "power_profiles.enforced": 1},
    ),
    (
        "nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts", 16, 1,
        {"ecc.mode_current": 1, "remapped_rows.pending": 0},
    ),
    ("nvmlDeviceGetCurrentClockFreqs", 2052, 1,
     {"performance_state": 0, "clocks.graphics_current": 1, "clocks.memory_current": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "size", "number", "values"), TAGGED, ids=lambda value: str(value)[:40])
def test_a_struct_must_carry_its_tag(scene: Scene, name: str, size: int, number: int, values: dict[str, Value]) -> None:
    library = scene.start(one(values))
    for tag in (0, size, (number + 7) << 24 | size, number << 24 | (size + 8)):
        buffer = ctypes.create_string_buffer(struct.pack("<I", tag), 4096)
        assert library.code(name, library.handle(), buffer, buffer) == WRONG_TAG
        assert buffer.raw[4:] == bytes(4092)
    good = ctypes.create_string_buffer(struct.pack("<I", number << 24 | size), 4096)
    assert library.code(name, library.handle(), good, good) == SUCCESS


def test_the_utilisation_of_processes_must_carry_its_tag(scene: Scene) -> None:
    """Two passes: with a good tag the count comes first."""
    library = scene.start(node(runtime(processes=(ProcessSpec(1, "C", "x", 1),))))
    name = "nvmlDeviceGetProcessesUtilizationInfo"
    for tag, code in ((0x01000018, INSUFFICIENT_SIZE), (0x02000018, WRONG_TAG), (0, WRONG_TAG)):
        assert library.code(name, library.handle(), ctypes.create_string_buffer(struct.pack("<I", tag), 24)) == code


def test_pci_info_comes_in_the_layout_of_its_age(scene: Scene) -> None:
    library = scene.start(node(runtime(), devices=(device(0),)))
    numbers = (0, 0x10, 0, 0x233010DE)
    assert filled(library, "nvmlDeviceGetPciInfo", 32) == struct.pack("<16s4I", b"0000:10:00.0", *numbers)
    second = struct.pack("<16s5I16x", b"0000:10:00.0", *numbers, 0x16C110DE)
    assert filled(library, "nvmlDeviceGetPciInfo_v2", 52) == second
    third = struct.pack("<16s5I32s", b"0000:10:00.0", *numbers, 0x16C110DE, b"00000000:10:00.0")
    assert filled(library, "nvmlDeviceGetPciInfo_v3", 68) == third
    extended = struct.pack("<8I32s", 0x01000040, *numbers, 0x16C110DE, 3, 2, b"00000000:10:00.0")
    assert filled(library, "nvmlDeviceGetPciInfoExt", 64, 0x01000040) == extended


def test_utilisation_is_gpu_and_memory(scene: Scene) -> None:
    library = scene.start(one({"utilization.gpu": 55, "utilization.memory": 22}))
    assert struct.unpack("<II", filled(library, "nvmlDeviceGetUtilizationRates", 8)) == (55, 22)


@pytest.mark.parametrize("refused", ["utilization.gpu", "utilization.memory"])
def test_utilisation_is_whole_or_not_at_all(scene: Scene, refused: str) -> None:
    library = scene.start(one({"utilization.gpu": 55, "utilization.memory": 22, refused: Refusal(4)}))
    assert library.code("nvmlDeviceGetUtilizationRates", library.handle(), ctypes.create_string_buffer(8)) == 4


def test_the_margin_is_what_is_left_to_the_reference(scene: Scene) -> None:
    library = scene.start(one({"thermal.temperature_gpu_c": 90, "thermal.tlimit.reference_c": 87}))
    assert struct.unpack("<Ii", filled(library, "nvmlDeviceGetMarginTemperature", 8, 0x01000008))[1] == -3
