"""cuInit: when it fails and how, and what it fixes."""

from __future__ import annotations

import json
import struct

import pytest

from simnode.nvml.cells import HEADER
from simnode.state import DeviceRuntime
from tests.cuda.conftest import (
    DEVICE_UNAVAILABLE,
    DRIVER_MISMATCH,
    INVALID_CONTEXT,
    INVALID_VALUE,
    NO_DEVICE,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    SUCCESS,
    SYSTEM_NOT_READY,
    Scene,
)
from tests.nvml.nodes import node, runtime

GPU_IS_LOST = 15
LOST = runtime(lost=GPU_IS_LOST)


def test_nothing_but_the_version_answers_before(scene: Scene) -> None:
    scene.publish(node(runtime()))
    program = """show([number("cuDriverGetVersion"), number("cuDeviceGetCount"), attribute(1), name(0), bus_id(0),
        number("cuDeviceGet", 0), number("cuCtxGetDevice"), cuda.cuMemAlloc_v2(None, 1)])"""
    assert scene.run(program) == [13000, *[[NOT_INITIALIZED]] * 6, NOT_INITIALIZED]


def test_it_takes_no_flags(scene: Scene) -> None:
    scene.publish(node(runtime()))
    assert scene.run("show(cuda.cuInit(1))") == INVALID_VALUE


@pytest.mark.parametrize(
    ("runtimes", "answer"),
    [
        pytest.param((), [NO_DEVICE], id="no-gpu"),
        pytest.param((LOST,), [NO_DEVICE], id="all-lost"),
        pytest.param((runtime(), LOST, runtime()), ["10", "12"], id="one-lost"),
        pytest.param((runtime({"fabric.state": "not_started"}),), [SYSTEM_NOT_READY], id="fabric-not-started"),
        pytest.param((runtime(), runtime({"fabric.state": "in_progress"})), [SYSTEM_NOT_READY], id="one-in-progress"),
        pytest.param((runtime({"fabric.state": "completed"}),), ["10"], id="fabric-ready"),
        pytest.param((runtime({"fabric.state": "not_supported"}),), ["10"], id="no-fabric"),
    ],
)
def test_what_it_finds(scene: Scene, runtimes: tuple[DeviceRuntime, ...], answer: list[object]) -> None:
    scene.publish(node(*runtimes))
    assert scene.run("show(seen())") == answer


def test_after_a_failure_it_looks_again(scene: Scene) -> None:
    scene.publish(node())
    running = scene.start("""show(seen()); show(number("cuDeviceGetCount")); input(); show(seen())""")
    assert running.stdout
    assert [json.loads(running.stdout.readline()) for _ in range(2)] == [[NO_DEVICE], [NOT_INITIALIZED]]
    scene.publish(node(runtime()))
    assert json.loads(running.communicate("\n", timeout=30)[0]) == ["10"]


def test_without_a_driver_there_is_no_device(scene: Scene) -> None:
    """No image, whichever function asks; and one that was never published."""
    program = """show([cuda.cuInit(0), number("cuDriverGetVersion"), number("cuDeviceGetCount")])"""
    answer = [NO_DEVICE, [NO_DEVICE], [NOT_INITIALIZED]]
    assert scene.run(program) == answer
    assert scene.run(program, SIMNODE_IMAGE="/nonexistent") == answer


def test_another_format_is_a_mismatch(scene: Scene) -> None:
    scene.publish(node(runtime()))
    with scene.path.open("r+b") as file:
        file.seek(HEADER.offsets["format"])
        file.write(struct.pack("<I", 99))
    assert scene.run("show(cuda.cuInit(0))") == DRIVER_MISMATCH


def test_the_devices_stay_those_of_the_first_success(scene: Scene) -> None:
    scene.publish(node(runtime(), runtime()))
    running = scene.start("""show(seen()); input(); show(seen())""")
    assert running.stdout
    assert json.loads(running.stdout.readline()) == ["10", "11"]
    scene.publish(node(runtime(), runtime(), runtime()))
    assert json.loads(running.communicate("\n", timeout=30)[0]) == ["10", "11"]


def test_a_device_lost_later_refuses_everything(scene: Scene) -> None:
    """Those beside it go on."""
    scene.publish(node(runtime(), runtime()))
    program = """show(seen()); input(); uuid = create_string_buffer(16); size = c_size_t()
show([name(1), bus_id(1), attribute(1, 1), attribute(75, 1), cuda.cuDeviceGetUuid(uuid, 1),
      cuda.cuDeviceTotalMem_v2(byref(size), 1), number("cuDeviceCanAccessPeer", 0, 1), name(0)])"""
    running = scene.start(program)
    assert running.stdout
    assert json.loads(running.stdout.readline()) == ["10", "11"]
    scene.publish(node(runtime(), LOST))
    (*answers, beside) = json.loads(running.communicate("\n", timeout=30)[0])
    assert answers == [*[[DEVICE_UNAVAILABLE]] * 4, *[DEVICE_UNAVAILABLE] * 2, [DEVICE_UNAVAILABLE]]
    assert beside == "NVIDIA H100 80GB HBM3"


def test_threads_that_start_at_once_see_the_same(scene: Scene) -> None:
    scene.publish(node(*[runtime()] * 8))
    program = """
import threading
gate, found = threading.Barrier(8), []
def look():
    gate.wait()
    found.append(seen())
threads = [threading.Thread(target=look) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
show([len(found), all(each == found[0] for each in found), len(found[0])])"""
    assert scene.run(program) == [8, True, 8]


def test_a_child_forked_after_it_still_sees_the_devices(scene: Scene) -> None:
    """Unlike the real driver, which holds memory that a child does not have."""
    scene.publish(node(runtime()))
    program = """
import os
seen()
child = os.fork()
if child == 0:
    os._exit(seen() != ["10"])
show(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"""
    assert scene.run(program) == SUCCESS


def test_there_is_no_context(scene: Scene) -> None:
    """Asked for one, it says so; made one, it refuses."""
    program = """[number("cuCtxGetDevice"), cuda.cuCtxGetCurrent(byref(now := c_void_p(77))), now.value,
        cuda.cuDevicePrimaryCtxGetState(0, byref(flags := c_uint(7)), byref(active := c_int(7))),
        flags.value, active.value,
        cuda.cuDevicePrimaryCtxRetain(byref(now), 0)]"""
    assert scene.show(node(runtime()), program) == [[INVALID_CONTEXT], SUCCESS, None, SUCCESS, 0, 0, NOT_SUPPORTED]
