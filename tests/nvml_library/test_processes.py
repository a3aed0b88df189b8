"""Lists of processes: in two passes, in the layout of the caller's age, by type."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import ProcessSpec, State
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, SUCCESS, Library, Scene

NONE = 0xFFFFFFFF
PROCESSES = (
    ProcessSpec(4242, "C", "/usr/bin/python3", 6000 << 20, 37, 12, 3, 4),
    ProcessSpec(4243, "G", "/usr/lib/xorg/Xorg", 50 << 20, 1, 2),
    ProcessSpec(4244, "C+G", "trainer", 70 << 20),
)
LISTS = [
    pytest.param(f"nvmlDeviceGet{kind}RunningProcesses{suffix}", size, pids, id=f"{kind}{suffix}")
    for kind, pids in (("Compute", [4242, 4244]), ("Graphics", [4243, 4244]), ("MPSCompute", []))
    for suffix, size in (("", 16), ("_v2", 24), ("_v3", 24))
]


def occupied() -> State:
    return node(runtime(processes=PROCESSES), runtime())


@pytest.mark.parametrize(("name", "size", "pids"), LISTS)
def test_a_list_is_asked_for_twice(scene: Scene, name: str, size: int, pids: list[int]) -> None:
    library = scene.start(occupied())
    count = ctypes.c_uint(0)
    code = library.code(name, library.handle(), ctypes.byref(count), None)
    assert (code, count.value) == (INSUFFICIENT_SIZE if pids else SUCCESS, len(pids))
    buffer = (ctypes.c_ubyte * (size * 8))(*[0xA5] * size * 8)
    count = ctypes.c_uint(8)
    library.call(name, library.handle(), ctypes.byref(count), buffer)
    used = {process.pid: process.used_memory_bytes for process in PROCESSES}
    rows = [bytes(buffer)[i * size : (i + 1) * size] for i in range(count.value)]
    assert [struct.unpack_from("<I4xQ", row) for row in rows] == [(pid, used[pid]) for pid in pids]
    if size == 24:
        assert {struct.unpack_from("<II", row, 16) for row in rows} <= {(NONE, NONE)}
    assert set(bytes(buffer)[size * count.value :]) == {0xA5}


@pytest.mark.parametrize(("name", "size", "pids"), LISTS)
def test_a_buffer_too_small_is_left_alone(scene: Scene, name: str, size: int, pids: list[int]) -> None:
    library = scene.start(occupied())
    buffer, count = ctypes.create_string_buffer(size), ctypes.c_uint(len(pids) - 1 if pids else 0)
    code = library.code(name, library.handle(), ctypes.byref(count), buffer)
    assert (code, count.value) == (INSUFFICIENT_SIZE if pids else SUCCESS, len(pids))
    assert buffer.raw == bytes(size)


def test_as_many_as_an_image_holds_are_listed(scene: Scene) -> None:
    library = scene.start(node(runtime(processes=tuple(ProcessSpec(i + 1, "C", "x", i) for i in range(256)))))
    buffer, count = ctypes.create_string_buffer(24 * 300), ctypes.c_uint(300)
    library.call("nvmlDeviceGetComputeRunningProcesses_v3", library.handle(), ctypes.byref(count), buffer)
    assert [struct.unpack_from("<I", buffer, 24 * i)[0] for i in range(count.value)] == list(range(1, 257))


class Details(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("mode", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("entries", ctypes.c_void_p),
    ]


@pytest.mark.parametrize(("mode", "pids"), [(0, [4242, 4244]), (1, [4243, 4244]), (2, [])])
def test_details_come_by_mode(scene: Scene, mode: int, pids: list[int]) -> None:
    library = scene.start(occupied())
    details = Details(0x01000018, mode, 0, None)
    name = "nvmlDeviceGetRunningProcessDetailList"
    code = library.code(name, library.handle(), ctypes.byref(details))
    assert (code, details.count) == (INSUFFICIENT_SIZE if pids else SUCCESS, len(pids))
    buffer = ctypes.create_string_buffer(32 * 4)
    details = Details(0x01000018, mode, 4, ctypes.addressof(buffer))
    library.call(name, library.handle(), ctypes.byref(details))
    assert [struct.unpack_from("<I", buffer, 32 * i)[0] for i in range(details.count)] == pids
    bad = Details(0x01000018, 3, 4, ctypes.addressof(buffer))
    assert library.code(name, library.handle(), ctypes.byref(bad)) == INVALID_ARGUMENT


def test_utilisation_has_a_sample_for_each_process(scene: Scene) -> None:
    library = scene.start(occupied())
    name, last_seen = "nvmlDeviceGetProcessUtilization", ctypes.c_ulonglong(0)
    count = ctypes.c_uint(0)
    code = library.code(name, library.handle(), None, ctypes.byref(count), last_seen)
    assert (code, count.value) == (INSUFFICIENT_SIZE, 3)
    buffer = ctypes.create_string_buffer(32 * 3)
    library.call(name, library.handle(), buffer, ctypes.byref(count), last_seen)
    pid, stamp, *busy = struct.unpack_from("<I4xQ4I", buffer)
    assert (pid, busy) == (4242, [37, 12, 3, 4])
    later = ctypes.c_ulonglong(stamp + 10**9)
    for handle, seen in ((library.handle(1), last_seen), (library.handle(), later)):
        count = ctypes.c_uint(3)
        assert library.code(name, handle, buffer, ctypes.byref(count), seen) == NOT_FOUND
        assert count.value == 0


@pytest.mark.parametrize(
    ("pid", "length", "expected"),
    [
        (4243, 64, "/usr/lib/xorg/Xorg"),
        (4243, 5, "/usr"),
        (4243, 1, ""),
        (1, 64, NOT_FOUND),
        (4243, 0, INVALID_ARGUMENT),
    ],
)
def test_a_process_has_a_name_as_long_as_the_buffer(scene: Scene, pid: int, length: int, expected: str | int) -> None:
    library: Library = scene.start(occupied())
    out = ctypes.create_string_buffer(b"?" * 64, 65)
    code = library.code("nvmlSystemGetProcessName", pid, out, length)
    assert (out.value.decode() if code == SUCCESS else code) == expected
    assert out.raw[length:64] == b"?" * (64 - length)
