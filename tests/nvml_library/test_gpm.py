"""GPU performance monitoring: two samples, and the means between them."""

from __future__ import annotations

import ctypes
import time

import pytest

from simnode.state import Gauge, LinkSpec, LoadSpec, State, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    WRONG_TAG,
    Library,
    Scene,
)

VALUES: dict[str, Value] = {
    "architecture": 9,
    "utilization.gpu": Gauge(0, 100),
    "utilization.memory": Gauge(0, 60),
    "utilization.decoder": 12,
    "pcie.tx_throughput_kbps": 2048,
}
LINKS = tuple(LinkSpec(True, "switch", "") for _ in range(18))


class Metric(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_double),
        ("short", ctypes.c_char_p),
        ("long", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
    ]


class Get(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
        ("metrics", Metric * 8),
    ]


def steady(percent: int, architecture: str = "hopper") -> State:
    """A GPU under a constant load."""
    load = LoadSpec("steady", percent, percent, period_s=1.0)
    state = node(runtime(VALUES, load=load, links=LINKS))
    return state if architecture == "hopper" else node(runtime(dict(VALUES) | {"architecture": 8}, load=load))


def sample(library: Library, device: int = 0) -> ctypes.c_void_p:
    """A new sample of a device."""
    made = ctypes.c_void_p()
    library.call("nvmlGpmSampleAlloc", ctypes.byref(made))
    library.call("nvmlGpmSampleGet", library.handle(device), made)
    return made


def measured(library: Library, *ids: int, swapped: bool = False) -> list[Metric]:
    """These metrics over some 30 ms."""
    first = sample(library)
    time.sleep(0.03)
    pair = (sample(library), first) if swapped else (first, sample(library))
    get = Get(1, len(ids), *pair)
    for metric, number in zip(get.metrics, ids, strict=False):
        metric.id = number
    library.call("nvmlGpmMetricsGet", ctypes.byref(get))
    return list(get.metrics[: len(ids)])


@pytest.mark.parametrize("swapped", [False, True])
def test_a_metric_is_the_mean_between_two_samples_in_any_order(scene: Scene, swapped: bool) -> None:
    library = scene.start(steady(50))
    gpu, memory, occupancy, decoder, sent, link = measured(library, 1, 10, 3, 30, 20, 63, swapped=swapped)
    assert gpu.value == pytest.approx(50, abs=0.5)
    assert memory.value == pytest.approx(30, abs=0.5)
    assert occupancy.value == pytest.approx(37.5, abs=0.5)
    assert (decoder.value, sent.value) == (12, 2)
    assert link.value > 0
    assert [metric.unit for metric in (gpu, sent)] == [b"%", b"MiB/s"]


def test_all_links_carry_the_sum_of_each(scene: Scene) -> None:
    library = scene.start(steady(100))
    everything, one, last = measured(library, 61, 63, 97)
    assert everything.value == pytest.approx(18 * one.value)
    assert last.value == pytest.approx(one.value, rel=0.01)


def test_a_metric_that_nobody_knows_is_refused_by_itself(scene: Scene) -> None:
    library = scene.start(steady(50))
    assert [metric.code for metric in measured(library, 1, 99, 300, 2)] == [SUCCESS, 3, 3, SUCCESS]


def test_boards_before_hopper_are_not_monitored(scene: Scene) -> None:
    library = scene.start(steady(50, "ada"))
    support = (ctypes.c_uint * 2)(1, 7)
    library.call("nvmlGpmQueryDeviceSupport", library.handle(), support)
    assert support[1] == 0
    made = ctypes.c_void_p()
    library.call("nvmlGpmSampleAlloc", ctypes.byref(made))
    assert library.code("nvmlGpmSampleGet", library.handle(), made) == NOT_SUPPORTED
    state = ctypes.byref(ctypes.c_uint())
    assert library.code("nvmlGpmQueryIfStreamingEnabled", library.handle(), state) == NOT_SUPPORTED


def test_hopper_is_monitored_but_streaming_is_the_administrators(scene: Scene) -> None:
    library = scene.start(steady(50))
    support = (ctypes.c_uint * 2)(1, 7)
    library.call("nvmlGpmQueryDeviceSupport", library.handle(), support)
    assert support[1] == 1
    assert library.number("nvmlGpmQueryIfStreamingEnabled", library.handle()) == 0
    assert library.code("nvmlGpmSetStreamingEnabled", library.handle(), 1) == NO_PERMISSION


def test_both_structs_carry_a_plain_version(scene: Scene) -> None:
    library = scene.start(steady(50))
    tag = 0x01000008
    assert library.code("nvmlGpmQueryDeviceSupport", library.handle(), (ctypes.c_uint * 2)(tag, 0)) == WRONG_TAG
    assert library.code("nvmlGpmMetricsGet", ctypes.byref(Get(tag, 1))) == WRONG_TAG


def test_samples_that_are_none_are_refused_and_never_followed(scene: Scene) -> None:
    library = scene.start(steady(50))
    good, empty = sample(library), ctypes.c_void_p()
    library.call("nvmlGpmSampleAlloc", ctypes.byref(empty))
    for bad in (None, 0x1000, (good.value or 0) + 8, empty.value):
        assert library.code("nvmlGpmMetricsGet", ctypes.byref(Get(1, 1, good, bad))) == INVALID_ARGUMENT
    assert library.code("nvmlGpmSampleGet", library.handle(), ctypes.c_void_p(0x1000)) == INVALID_ARGUMENT
    for count in (0, 1000):
        assert library.code("nvmlGpmMetricsGet", ctypes.byref(Get(1, count, good, good))) == INVALID_ARGUMENT
    library.call("nvmlGpmSampleFree", good)
    assert library.code("nvmlGpmSampleFree", good) == INVALID_ARGUMENT


def test_a_lost_device_has_no_samples_and_no_metrics(scene: Scene) -> None:
    library = scene.start(steady(50))
    handle, first = library.handle(), sample(library)
    scene.publish(node(runtime(VALUES, lost=GPU_IS_LOST)))
    assert library.code("nvmlGpmSampleGet", handle, first) == GPU_IS_LOST
    assert library.code("nvmlGpmMetricsGet", ctypes.byref(Get(1, 1, first, first))) == GPU_IS_LOST


def test_samples_end_with_the_library(scene: Scene) -> None:
    library = scene.start(steady(50))
    first = sample(library)
    library.stop()
    assert library.code("nvmlGpmSampleFree", first) == UNINITIALIZED
    library.call("nvmlInit_v2")
    assert library.code("nvmlGpmSampleFree", first) == INVALID_ARGUMENT


def test_samples_end_with_the_library_behind_one_that_was_freed_too(scene: Scene) -> None:
    library = scene.start(steady(50))
    first, second = sample(library), sample(library)
    library.call("nvmlGpmSampleFree", first)
    library.stop()
    library.call("nvmlInit_v2")
    assert library.code("nvmlGpmSampleFree", second) == INVALID_ARGUMENT
