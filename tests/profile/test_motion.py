"""How readings follow the load: gauges over one curve that agree with one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.state import Counter, Gauge, LoadSpec, Value
from tests.examples import examples
from tests.profile.documents import h100, readings

MOVING = (
    "utilization.gpu",
    "utilization.memory",
    "power.current_draw_mw",
    "power.average_draw_mw",
    "power.memory.average_draw_mw",
    "thermal.temperature_gpu_c",
    "thermal.temperature_memory_c",
    "clocks.graphics_current",
    "clocks.sm_current",
    "memory.used_bytes",
    "pcie.tx_throughput_kbps",
)


def _ends(value: Value) -> tuple[int, int]:
    """A value with no load and under full load."""
    if isinstance(value, Gauge):
        return value.base, value.base + value.span
    assert isinstance(value, int)
    return value, value


def test_an_idle_board_is_constant() -> None:
    state = h100()
    for device in state.runtime.devices:
        assert device.load == LoadSpec()
        assert not [key for key, value in device.values if isinstance(value, Gauge)]
        assert all(value.span_rate == 0 for _, value in device.values if isinstance(value, Counter))


@pytest.mark.parametrize("key", MOVING)
def test_under_load_a_reading_rises_from_what_the_profile_says(key: str) -> None:
    idle, busy = readings(h100())[key], readings(h100("load.pattern=wave"))[key]
    assert isinstance(busy, Gauge)
    assert busy.base == idle
    assert busy.span > 0


def test_under_full_load_the_limits_hold() -> None:
    values = readings(h100("load.pattern=wave"))
    assert _ends(values["power.current_draw_mw"])[1] == 665_000
    assert _ends(values["thermal.temperature_gpu_c"])[1] <= 87 - 8
    assert _ends(values["clocks.graphics_current"])[1] == 1980
    assert _ends(values["memory.used_bytes"])[1] < (81559 - 480) << 20
    assert _ends(values["utilization.gpu"]) == (0, 100)
    assert values["clocks_throttle_reasons.active"] == 0


def test_energy_is_the_integral_of_power() -> None:
    values = readings(h100("load.pattern=wave"))
    power = values["power.current_draw_mw"]
    assert isinstance(power, Gauge)
    assert values["power.total_energy_consumption_mj"] == Counter(600000, float(power.base), float(power.span))


def test_training_runs_at_full_clock_and_keeps_its_memory() -> None:
    values = readings(h100("load.pattern=training"))
    assert values["clocks.sm_current"] == 1980
    assert isinstance(values["memory.used_bytes"], int)
    assert values["memory.used_bytes"] > 0


def test_the_devices_of_a_node_differ_by_their_seed() -> None:
    state = h100("load={pattern: bursty, min: 20, max: 80, period_s: 10, seed: 5}")
    assert [device.load for device in state.runtime.devices] == [
        LoadSpec("bursty", 20, 80, 10.0, 5 + index) for index in range(8)
    ]


def test_a_value_that_is_set_does_not_move() -> None:
    values = readings(h100("load.pattern=wave", "thermal.temperature_gpu_c=91", "utilization.gpu=0"))
    assert values["thermal.temperature_gpu_c"] == 91
    assert values["utilization.gpu"] == 0
    assert isinstance(values["power.current_draw_mw"], Gauge)


def test_an_unset_value_does_not_appear_under_load() -> None:
    assert "fan.speed_percent" not in readings(h100("load.pattern=wave"))
    assert "utilization.gpu" not in readings(h100("load.pattern=wave", "utilization.gpu=null"))


@pytest.mark.parametrize(
    ("utilization", "load", "memory"),
    [
        (
            "{pattern: steady, gpu_min: 10, gpu_max: 45, memory_min: 5, memory_max: 25}",
            ("steady", 10, 45, 60.0),
            (5, 25),
        ),
        ("{pattern: burst, gpu_min: 0, gpu_max: 100, burst_period_sec: 15}", ("bursty", 0, 100, 30.0), (0, 100)),
        ("{pattern: idle, gpu_min: 10, gpu_max: 50}", ("steady", 10, 20, 60.0), (0, 25)),
        ("{pattern: busy, gpu_min: 10, gpu_max: 50}", ("steady", 40, 50, 60.0), (75, 100)),
        ("{}", ("steady", 0, 100, 60.0), (0, 100)),
    ],
)
def test_dynamic_utilization_compiles_to_a_load(
    utilization: str, load: tuple[str, int, int, float], memory: tuple[int, int]
) -> None:
    state = h100(f"dynamic_metrics={{seed: 9, utilization: {utilization}}}")
    assert state.runtime.devices[0].load == LoadSpec(*load, 9)
    gauge = readings(state)["utilization.memory"]
    assert isinstance(gauge, Gauge)
    for percent, expected in zip(load[1:3], memory, strict=True):
        assert abs(gauge.base + gauge.span * percent / 100 - expected) <= 1 or gauge.base == 0


def test_dynamic_temperature_and_power_move_only_themselves() -> None:
    temperature = "{base_c: 50, variance_c: 3, ramp_c: 15}"
    power = "{base_mw: 250000, variance_mw: 25000}"
    state = h100(f"dynamic_metrics={{temperature: {temperature}, power: {power}}}")
    values = readings(state)
    assert _ends(values["thermal.temperature_gpu_c"]) == (47, 68)
    assert _ends(values["power.current_draw_mw"]) == (225000, 275000)
    assert values["utilization.gpu"] == 0
    assert values["clocks.sm_current"] == 345
    assert state.runtime.devices[0].load.pattern == "wave"


def test_dynamic_ranges_stay_within_the_limits() -> None:
    values = readings(
        h100("dynamic_metrics={temperature: {base_c: 200}, power: {base_mw: 800000, variance_mw: 200000}}")
    )
    assert values["thermal.temperature_gpu_c"] == 95
    assert _ends(values["power.current_draw_mw"]) == (600000, 700000)


def test_load_is_stronger_than_dynamic_metrics() -> None:
    state = h100("dynamic_metrics.utilization.pattern=burst", "load.pattern=idle")
    assert state.runtime == h100().runtime


@given(
    st.sampled_from(["steady", "wave", "bursty", "training", "inference"]),
    st.integers(0, 100),
    st.integers(0, 2 * 10**6),
    st.integers(0, 95),
)
@examples(20)
def test_no_reading_falls_below_idle_under_any_load(pattern: str, minimum: int, power: int, temperature: int) -> None:
    overrides = ("power.min_limit_mw=0", "power.max_limit_mw=2000000", f"power.enforced_limit_mw={power}")
    state = h100(*overrides, f"load={{pattern: {pattern}, min: {minimum}}}", f"thermal.max_operating_c={temperature}")
    for device in state.runtime.devices:
        for key, value in device.values:
            if isinstance(value, Gauge):
                assert value.base >= 0, key
                assert value.span > 0, key
