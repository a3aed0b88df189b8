"""Answers that follow from other values by a rule, and those that are the same for every board."""

from __future__ import annotations

import ctypes

import pytest

from simnode.state import Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INVALID_ARGUMENT, NOT_SUPPORTED, Scene, filled

INFOROM: dict[str, Value] = {"inforom.image_version": "G520.0200.00.05", "board_part_number": "692-2G520-0200-000"}


def test_the_inforoms_checksum_is_that_of_its_configuration(scene: Scene) -> None:
    other = INFOROM | {"inforom.image_version": "G520.0200.00.06"}
    library = scene.start(node(runtime(INFOROM), runtime(INFOROM), runtime(other), runtime()))
    name = "nvmlDeviceGetInforomConfigurationChecksum"
    same, again, different = (library.number(name, library.handle(index)) for index in range(3))
    assert same == again != different
    assert library.code(name, library.handle(3), ctypes.byref(ctypes.c_uint())) == NOT_SUPPORTED


def test_every_gpu_has_an_interrupt_of_its_own(scene: Scene) -> None:
    library = scene.start(node(*[runtime()] * 3))
    numbers = {library.number("nvmlDeviceGetIrqNum", library.handle(index)) for index in range(3)}
    assert len(numbers) == 3
    assert min(numbers) > 0


@pytest.mark.parametrize("suffix", ["", "_v2", "_v3", "_v4"])
def test_nothing_is_licensed(scene: Scene, suffix: str) -> None:
    """Only what all layouts share is written: whether there are features, and how many."""
    library = scene.start(node(runtime()))
    assert filled(library, f"nvmlDeviceGetGridLicensableFeatures{suffix}", 8) == bytes(8)


def test_application_clocks_are_anybodys_and_auto_boost_is_nobodys(scene: Scene) -> None:
    library = scene.start(node(runtime({"clocks.graphics_app": 1980})))
    name, out = "nvmlDeviceGetAPIRestriction", ctypes.byref(ctypes.c_uint())
    assert library.number(name, library.handle(), 0) == 0
    assert library.code(name, library.handle(), 1, out) == NOT_SUPPORTED
    assert library.code(name, library.handle(), 2, out) == INVALID_ARGUMENT


def test_inactive_rows_are_told_beside_the_active(scene: Scene) -> None:
    rows: dict[str, Value] = {
        "remapped_rows.correctable": 1,
        "remapped_rows.correctable_inactive": 2,
        "remapped_rows.uncorrectable": 3,
        "remapped_rows.uncorrectable_inactive": 4,
        "remapped_rows.pending": 1,
        "remapped_rows.failure_occurred": 0,
    }
    library = scene.start(node(runtime(rows)))
    assert list(memoryview(filled(library, "nvmlDeviceGetRemappedRows_v2", 24)).cast("I")) == [1, 2, 3, 4, 1, 0]
