"""Affinity masks and the nearness of GPUs."""

from __future__ import annotations

import ctypes
import os

import pytest

from simnode.state import RootComplex
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INVALID_ARGUMENT, Scene

ROOTS = (
    RootComplex("pci0000:10", 0, ("0000:10:00.0",), "0-2,64"),
    RootComplex("pci0000:11", 1, ("0000:11:00.0",), "3"),
)


def test_every_word_of_an_affinity_is_written(scene: Scene) -> None:
    """Callers hand over a buffer full of anything."""
    library = scene.start(node(runtime(), runtime(), roots=ROOTS))
    words = (ctypes.c_ulong * 24)(*[0xFFFFFFFF] * 24)
    for name, more in (("nvmlDeviceGetCpuAffinity", ()), ("nvmlDeviceGetCpuAffinityWithinScope", (1,))):
        library.call(name, library.handle(), 24, words, *more)
        assert list(words) == [0b111, 1, *[0] * 22]
    library.call("nvmlDeviceGetMemoryAffinity", library.handle(1), 2, words, 0)
    assert list(words[:2]) == [0b10, 0]


def test_a_cpu_names_its_gpus(scene: Scene) -> None:
    library = scene.start(node(runtime(), runtime(), roots=ROOTS))
    for cpu, expected in ((64, [0]), (3, [1]), (9, [])):
        count, found = ctypes.c_uint(0), (ctypes.c_void_p * 4)()
        library.call("nvmlSystemGetTopologyGpuSet", cpu, ctypes.byref(count), None)
        assert count.value == len(expected)
        count = ctypes.c_uint(4)
        library.call("nvmlSystemGetTopologyGpuSet", cpu, ctypes.byref(count), found)
        assert list(found[: count.value]) == [library.handle(index).value for index in expected]


def test_nearest_are_those_at_the_level_and_no_nearer(scene: Scene) -> None:
    library = scene.start(node(runtime(), runtime(), roots=ROOTS))
    levels = {0: library.number("nvmlDeviceGetTopologyCommonAncestor", library.handle(0), library.handle(0))}
    level = library.number("nvmlDeviceGetTopologyCommonAncestor", library.handle(0), library.handle(1))
    assert (levels[0], level) == (0, 50)
    for asked, number in ((50, 1), (40, 0), (10, 0)):
        count, found = ctypes.c_uint(4), (ctypes.c_void_p * 4)()
        library.call("nvmlDeviceGetTopologyNearestGpus", library.handle(0), asked, ctypes.byref(count), found)
        assert count.value == number


def test_a_thread_goes_to_the_devices_cpus_if_the_machine_has_them(scene: Scene) -> None:
    before = os.sched_getaffinity(0)
    first = min(before)
    roots = (
        RootComplex("pci0000:10", 0, ("0000:10:00.0",), str(first)),
        RootComplex("pci0000:11", 1, ("0000:11:00.0",), "1200"),
    )
    library = scene.start(node(runtime(), runtime(), roots=roots))
    try:
        library.call("nvmlDeviceSetCpuAffinity", library.handle(0))
        assert os.sched_getaffinity(0) == {first}
        library.call("nvmlDeviceSetCpuAffinity", library.handle(1))
        assert os.sched_getaffinity(0) == {first}
        library.call("nvmlDeviceClearCpuAffinity", library.handle(0))
        assert os.sched_getaffinity(0) >= before
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    "name", ["nvmlUnitGetHandleByIndex", "nvmlGetExcludedDeviceInfoByIndex", "nvmlGetBlacklistDeviceInfoByIndex"]
)
def test_of_none_there_is_no_first(scene: Scene, name: str) -> None:
    library = scene.start(node(runtime()))
    assert library.code(name, 0, ctypes.create_string_buffer(4096)) == INVALID_ARGUMENT
