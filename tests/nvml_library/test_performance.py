"""Performance states, the clocks that belong to them, and what is said of the board's moment as text or by domain."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import ClockTable, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    Library,
    Scene,
    filled,
)

TWO = (ClockTable(5001, (1590, 300)), ClockTable(405, (645, 300)))
ONE = (ClockTable(2619, (1980, 345)), ClockTable(1593, (1980, 345)))
UNKNOWN = 32


def states(library: Library) -> list[int]:
    out = (ctypes.c_uint * 16)(*[99] * 16)
    library.call("nvmlDeviceGetSupportedPerformanceStates", library.handle(), out, 64)
    return list(out)


@pytest.mark.parametrize(("clocks", "expected"), [(TWO, [0, 8]), (ONE, [0])], ids=["idle memory clock", "none"])
def test_a_board_idles_in_p8_if_its_memory_can(
    scene: Scene, clocks: tuple[ClockTable, ...], expected: list[int]
) -> None:
    library = scene.start(node(runtime(clocks=clocks)))
    assert states(library) == expected + [UNKNOWN] * (16 - len(expected))
    out = ctypes.create_string_buffer(4)
    code = library.code("nvmlDeviceGetSupportedPerformanceStates", library.handle(), out, 4 * len(expected) - 1)
    assert code == INSUFFICIENT_SIZE


@pytest.mark.parametrize(
    ("kind", "pstate", "expected"),
    [(0, 0, (300, 1590)), (1, 0, (300, 1590)), (2, 0, (5001, 5001)), (0, 8, (300, 645)), (2, 8, (405, 405))],
)
def test_a_state_has_its_clocks(scene: Scene, kind: int, pstate: int, expected: tuple[int, int]) -> None:
    library = scene.start(node(runtime(clocks=TWO)))
    assert library.numbers("nvmlDeviceGetMinMaxClockOfPState", 2, library.handle(), kind, pstate) == expected


def test_a_state_that_the_board_lacks_has_none(scene: Scene) -> None:
    library = scene.start(node(runtime(clocks=ONE)))
    outs = ctypes.c_uint(), ctypes.c_uint()
    arguments = [ctypes.byref(out) for out in outs]
    name = "nvmlDeviceGetMinMaxClockOfPState"
    assert library.code(name, library.handle(), 0, 8, *arguments) == INVALID_ARGUMENT
    scene.publish(node(runtime()))
    assert library.code(name, library.handle(), 0, 0, *arguments) == NOT_SUPPORTED


def test_the_modes_are_listed_as_text_slowest_first(scene: Scene) -> None:
    library = scene.start(node(runtime(clocks=TWO)))
    text = filled(library, "nvmlDeviceGetPerformanceModes", 2052, 0x01000804)[4:].split(b"\0")[0].decode()
    assert text.split(" ; ") == [
        "perf=8, nvclock=645, nvclockmin=300, nvclockmax=645, nvclockeditable=0, "
        "memclock=405, memclockmin=405, memclockmax=405, memclockeditable=0",
        "perf=0, nvclock=1590, nvclockmin=300, nvclockmax=1590, nvclockeditable=0, "
        "memclock=5001, memclockmin=5001, memclockmax=5001, memclockeditable=0",
    ]


def test_the_domains_are_as_busy_as_the_engines(scene: Scene) -> None:
    values: dict[str, Value] = {"utilization.gpu": 55, "utilization.memory": 22, "utilization.decoder": 3}
    library = scene.start(node(runtime(values)))
    words = struct.unpack("<33I", filled(library, "nvmlDeviceGetDynamicPstatesInfo", 132))
    assert [words[1 + 4 * domain : 3 + 4 * domain] for domain in range(4)] == [(1, 55), (1, 22), (1, 3), (0, 0)]


def test_no_clock_fails(scene: Scene) -> None:
    """Only what all layouts of the struct share is written."""
    library = scene.start(node(runtime({"architecture": 9})))
    assert filled(library, "nvmlDeviceGetClkMonStatus", 8) == bytes(8)
