"""Error counters: told apart by type, counter and place; none where ECC is off."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import Refusal, Value
from tests.nvml_library.conftest import (
    INSUFFICIENT_SIZE,
    NOT_SUPPORTED,
    Scene,
    filled,
    one,
)

ECC: dict[str, Value] = {
    "ecc.mode_current": 1,
    **{
        f"ecc.errors.{scope}.{bits}.{place}": 100 * i + 10 * j + k
        for i, bits in enumerate(("single_bit", "double_bit"), 1)
        for j, scope in enumerate(("volatile", "aggregate"), 1)
        for k, place in enumerate(
            ("l1_cache", "l2_cache", "device_memory", "register_file", "texture_memory", "total", "cbu")
        )
    },
    **{
        f"ecc.sram.{scope}.{what}": 1000 * i + j
        for i, scope in enumerate(("volatile", "aggregate"), 1)
        for j, what in enumerate(("correctable", "uncorrectable_parity", "uncorrectable_secded"), 1)
    },
}


@pytest.mark.parametrize("kind", [0, 1], ids=["corrected", "uncorrected"])
@pytest.mark.parametrize("counter", [0, 1], ids=["volatile", "aggregate"])
def test_ecc_counters_are_told_apart_by_type_counter_and_place(scene: Scene, kind: int, counter: int) -> None:
    library = scene.start(one(ECC))
    base = 100 * (kind + 1) + 10 * (counter + 1)
    for location, place in enumerate((0, 1, 2, 3, 4, None, 6)):
        if place is not None:
            name = "nvmlDeviceGetMemoryErrorCounter"
            assert library.wide(name, library.handle(), kind, counter, location) == base + place
    sram = 1000 * (counter + 1) + 1 if kind == 0 else 2 * 1000 * (counter + 1) + 2 + 3
    assert library.wide("nvmlDeviceGetMemoryErrorCounter", library.handle(), kind, counter, 7) == sram
    assert library.wide("nvmlDeviceGetTotalEccErrors", library.handle(), kind, counter) == base + 5
    detailed = filled(library, "nvmlDeviceGetDetailedEccErrors", 32, None, kind, counter)
    assert struct.unpack("<4Q", detailed) == (base, base + 1, base + 2, base + 3)


@pytest.mark.parametrize("mode", [0, Refusal(NOT_SUPPORTED)], ids=["off", "none"])
def test_there_are_no_ecc_counters_without_ecc(scene: Scene, mode: Value) -> None:
    library = scene.start(one({**ECC, "ecc.mode_current": mode}))
    out = ctypes.byref(ctypes.c_ulonglong())
    assert library.code("nvmlDeviceGetTotalEccErrors", library.handle(), 0, 0, out) == NOT_SUPPORTED
    assert library.code("nvmlDeviceGetMemoryErrorCounter", library.handle(), 0, 0, 2, out) == NOT_SUPPORTED


def test_sram_status_has_every_counter_in_its_place(scene: Scene) -> None:
    sources: dict[str, Value] = {
        f"ecc.sram.uncorrectable_sources.{name}": i
        for i, name in enumerate(("l2", "sm", "pcie", "microcontroller", "other"), 11)
    }
    library = scene.start(one({**ECC, **sources, "ecc.sram.threshold_exceeded": 1}))
    read = struct.unpack("<4x4x11QI4x", filled(library, "nvmlDeviceGetSramEccErrorStatus", 104, 0x01000068)[:104])
    assert read == (2002, 2003, 2001, 1002, 1003, 1001, 11, 12, 13, 14, 15, 1)


def test_the_row_remapper_histogram_has_five_grades(scene: Scene) -> None:
    grades = ("max", "high", "partial", "low", "none")
    library = scene.start(one({f"remapped_rows.availability_histogram.{name}": i for i, name in enumerate(grades)}))
    assert struct.unpack("<5I", filled(library, "nvmlDeviceGetRowRemapperHistogram", 20)) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(("name", "buffers"), [("nvmlDeviceGetRetiredPages", 1), ("nvmlDeviceGetRetiredPages_v2", 2)])
def test_retired_pages_fill_the_buffer_that_they_fit(scene: Scene, name: str, buffers: int) -> None:
    library = scene.start(one({"retired_pages.double_bit_retirement.count": 2}))
    room, found = [ctypes.create_string_buffer(b"\xa5" * 32, 32) for _ in range(buffers)], ctypes.c_uint(1)
    assert library.code(name, library.handle(), 1, ctypes.byref(found), *room) == INSUFFICIENT_SIZE
    assert found.value == 2
    assert {buffer.raw for buffer in room} == {b"\xa5" * 32}
    library.call(name, library.handle(), 1, ctypes.byref(found), *room)
    assert {buffer.raw[16:] for buffer in room} == {b"\xa5" * 16}
    assert b"\xa5" not in room[0].raw[:16]
    assert library.code(name, library.handle(), 0, ctypes.byref(found), *room) == NOT_SUPPORTED
