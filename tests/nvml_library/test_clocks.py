"""Clocks by type and id, and the two-pass lists of supported ones."""

from __future__ import annotations

import ctypes

import pytest

from simnode.state import ClockTable, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Library,
    Scene,
    one,
)

CLOCKS: dict[str, Value] = {
    **{f"clocks.{name}_current": 100 + i for i, name in enumerate(("graphics", "sm", "memory", "video"))},
    **{f"clocks.{name}_max": 200 + i for i, name in enumerate(("graphics", "sm", "memory", "video"))},
    "clocks.graphics_app": 300,
    "clocks.memory_app": 302,
    "clocks.graphics_app_default": 400,
    "clocks.memory_app_default": 402,
    "clocks.graphics_customer_boost_max": 500,
}


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("nvmlDeviceGetClockInfo", (), (100, 101, 102, 103)),
        ("nvmlDeviceGetMaxClockInfo", (), (200, 201, 202, 203)),
        ("nvmlDeviceGetApplicationsClock", (), (300, 300, 302, -NOT_SUPPORTED)),
        ("nvmlDeviceGetDefaultApplicationsClock", (), (400, 400, 402, -NOT_SUPPORTED)),
        ("nvmlDeviceGetMaxCustomerBoostClock", (), (500, 201, 202, 203)),
        ("nvmlDeviceGetClock", (0,), (100, 101, 102, 103)),
        ("nvmlDeviceGetClock", (1,), (300, 300, 302, -NOT_SUPPORTED)),
        ("nvmlDeviceGetClock", (2,), (400, 400, 402, -NOT_SUPPORTED)),
        ("nvmlDeviceGetClock", (3,), (500, 201, 202, 203)),
        ("nvmlDeviceGetClock", (4,), (-INVALID_ARGUMENT,) * 4),
    ],
)
def test_clocks_are_asked_for_by_type(
    scene: Scene, name: str, more: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    library = scene.start(one(CLOCKS))
    for kind, value in enumerate((*expected, -INVALID_ARGUMENT)):
        out = ctypes.c_uint()
        code = library.code(name, library.handle(), kind, *more, ctypes.byref(out))
        assert (out.value if code == SUCCESS else -code) == value


def listed(library: Library, name: str, room: int, *before: int) -> tuple[int, int, list[int]]:
    """Code, count and numbers of a two-pass list."""
    count, out = ctypes.c_uint(room), (ctypes.c_uint * max(room, 1))()
    buffer = out if room else None
    code = library.code(name, library.handle(), *before, ctypes.byref(count), buffer)
    return code, count.value, list(out)[: count.value if code == SUCCESS else 0]


def test_supported_clocks_are_listed_in_two_passes(scene: Scene) -> None:
    tables = (ClockTable(2619, (1980, 1965, 1950)), ClockTable(1593, (345,)))
    library = scene.start(node(runtime(clocks=tables)))
    memory, graphics = "nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetSupportedGraphicsClocks"
    assert listed(library, memory, 0) == (INSUFFICIENT_SIZE, 2, [])
    assert listed(library, memory, 2) == (SUCCESS, 2, [2619, 1593])
    assert listed(library, graphics, 2, 2619) == (INSUFFICIENT_SIZE, 3, [])
    assert listed(library, graphics, 32, 2619) == (SUCCESS, 3, [1980, 1965, 1950])
    assert listed(library, graphics, 32, 1593) == (SUCCESS, 1, [345])
    assert listed(library, graphics, 32, 1)[0] == NOT_FOUND


def test_a_board_without_a_clock_table_does_not_support_the_question(scene: Scene) -> None:
    library = scene.start(one({}))
    assert listed(library, "nvmlDeviceGetSupportedMemoryClocks", 8)[0] == NOT_SUPPORTED
