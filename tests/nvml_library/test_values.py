"""What functions answer that make something of several cells: thresholds, pairs, violations, texts, samples."""

from __future__ import annotations

import ctypes

import pytest

from simnode.state import Gauge, LoadSpec, Refusal, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Library,
    Scene,
    one,
)


@pytest.mark.parametrize(
    ("threshold", "key"),
    [(0, "thermal.shutdown_threshold_c"), (1, "thermal.slowdown_threshold_c"), (2, "thermal.memory_max_c"),
     (3, "thermal.max_operating_c"), (5, "thermal.target_temperature_c")],
)  # fmt: skip
def test_each_threshold_has_a_cell(scene: Scene, threshold: int, key: str) -> None:
    library = scene.start(one({key: 77}))
    assert library.number("nvmlDeviceGetTemperatureThreshold", library.handle(), threshold) == 77


@pytest.mark.parametrize(("threshold", "code"), [(4, NOT_SUPPORTED), (6, NOT_SUPPORTED), (7, NOT_SUPPORTED), (8, 2)])
def test_a_threshold_no_board_has_is_refused(scene: Scene, threshold: int, code: int) -> None:
    library = scene.start(one({}))
    out = ctypes.byref(ctypes.c_uint())
    assert library.code("nvmlDeviceGetTemperatureThreshold", library.handle(), threshold, out) == code


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("nvmlDeviceGetPowerManagementLimitConstraints", ("power.min_limit_mw", "power.max_limit_mw")),
        ("nvmlDeviceGetMigMode", ("mig.mode_current", "mig.mode_pending")),
        ("nvmlDeviceGetEccMode", ("ecc.mode_current", "ecc.mode_pending")),
        ("nvmlDeviceGetGpuOperationMode", ("gpu_operation_mode.current", "gpu_operation_mode.pending")),
        ("nvmlDeviceGetEncoderStats",
         ("encoder_stats.session_count", "encoder_stats.average_fps", "encoder_stats.average_latency_us")),
        ("nvmlDeviceGetRemappedRows", ("remapped_rows.correctable", "remapped_rows.uncorrectable",
                                       "remapped_rows.pending", "remapped_rows.failure_occurred")),
    ],
)  # fmt: skip
def test_words_that_belong_together_come_together(scene: Scene, name: str, keys: tuple[str, ...]) -> None:
    library = scene.start(one({key: i for i, key in enumerate(keys)}))
    assert library.numbers(name, len(keys), library.handle()) == tuple(range(len(keys)))
    scene.publish(one({**{key: i for i, key in enumerate(keys)}, keys[-1]: Refusal(4)}))
    outs = [ctypes.byref(ctypes.c_uint()) for _ in keys]
    assert library.code(name, library.handle(), *outs) == 4


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(0, 5000), (1, 7000), (2, 6000), (3, 0), (4, 0), (5, 0), (10, -NOT_SUPPORTED), (11, 0), (6, -INVALID_ARGUMENT),
     (12, -INVALID_ARGUMENT)],
)  # fmt: skip
def test_violations_are_nanoseconds_by_policy(scene: Scene, policy: int, expected: int) -> None:
    prefix = "clocks_throttle_reasons.counters."
    values: dict[str, Value] = {
        f"{prefix}sw_power_cap_us": 5,
        f"{prefix}sync_boost_us": 6,
        f"{prefix}sw_thermal_slowdown_us": 7,
    }
    library = scene.start(one(values))
    out = (ctypes.c_ulonglong * 2)()
    code = library.code("nvmlDeviceGetViolationStatus", library.handle(), policy, out)
    assert (out[1] if code == SUCCESS else -code) == expected


def test_error_texts_are_the_real_ones(library: Library) -> None:
    from pynvml import NVMLError

    known = {code: text for code, text in NVMLError._errcode_to_string.items() if code != 0}
    assert len(known) > 15
    assert {code: library.error_text(code) for code in known} == known
    assert library.error_text(12345) == "Unknown Error"


def test_samples_lie_in_the_past_and_agree_with_the_gauge(scene: Scene) -> None:
    load = LoadSpec("steady", 40, 40)
    values: dict[str, Value] = {"utilization.gpu": Gauge(0, 100), "utilization.memory": 0}
    library = scene.start(node(runtime(values, load=load)))
    samples, kind, count = (ctypes.c_ulonglong * 400)(), ctypes.c_uint(), ctypes.c_uint(0)
    arguments = (library.handle(), 1, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count))
    library.call("nvmlDeviceGetSamples", *arguments, None)
    assert (kind.value, count.value) == (1, 120)
    library.call("nvmlDeviceGetSamples", *arguments, samples)
    stamps, recorded = samples[0 : 2 * count.value : 2], samples[1 : 2 * count.value : 2]
    assert set(recorded) == {library.number("nvmlDeviceGetUtilizationRates", library.handle())}
    assert stamps == sorted(set(stamps))
    newest = ctypes.c_ulonglong(stamps[-1] + 10**9)
    arguments = (library.handle(), 1, newest, ctypes.byref(kind), ctypes.byref(count))
    assert library.code("nvmlDeviceGetSamples", *arguments, samples) == NOT_FOUND


@pytest.mark.parametrize(
    ("fans", "fan", "expected"),
    [(2, 0, 33), (2, 1, 33), (2, 2, -INVALID_ARGUMENT), (0, 0, -NOT_SUPPORTED), (None, 0, -NOT_SUPPORTED)],
)
def test_all_fans_of_a_board_turn_alike(scene: Scene, fans: int | None, fan: int, expected: int) -> None:
    values: dict[str, Value] = {} if fans is None else {"fan.count": fans}
    if fans:
        values["fan.speed_percent"] = 33
    library, out = scene.start(one(values)), ctypes.c_uint(9)
    code = library.code("nvmlDeviceGetFanSpeed_v2", library.handle(), fan, ctypes.byref(out))
    assert (out.value if code == SUCCESS else -code) == expected
    assert code == SUCCESS or out.value == 9
