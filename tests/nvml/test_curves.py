"""Load curves: periodic, bounded, the same for ever; and the C rules equal exact arithmetic."""

from __future__ import annotations

import ctypes
import struct
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.nvml.curves import FULL, PATTERNS, Curve, CurveError, curve
from simnode.nvml.layout import CURVE, CURVE_SEGMENTS
from simnode.state import LoadSpec
from tests.examples import examples

MOVING = [name for name in PATTERNS if name != "idle"]
TIMES = st.integers(0, 1 << 62)

loads = st.builds(
    lambda pattern, ends, period, seed: LoadSpec(pattern, min(ends), max(ends), period, seed),
    st.sampled_from(sorted(PATTERNS)),
    st.tuples(st.integers(0, 100), st.integers(0, 100)),
    st.floats(0.01, 1e6),
    st.integers(0, 1 << 64),
)


def packed(shape: Curve) -> bytes:
    raw = struct.pack("<Q33I4x33Q", shape.inverse_period, *shape.knots, *shape.cumulative)
    assert len(raw) == CURVE.size
    return raw


def position(shape: Curve, t: int) -> tuple[int, Fraction]:
    """Whole periods, and segments into the period, to 2^-16 of one."""
    periods, phase = divmod(t * shape.inverse_period, 1 << 64)
    return periods, Fraction(phase >> 43, 1 << 16)


def exact_load(shape: Curve, t: int) -> Fraction:
    _, at = position(shape, t)
    segment = floor(at)
    return shape.knots[segment] + (shape.knots[segment + 1] - shape.knots[segment]) * (at - segment)


def exact_integral(shape: Curve, t: int) -> Fraction:
    """In 2^-32 segments of full load: a load of 2^16 over one segment is 2^32."""
    periods, at = position(shape, t)
    areas = [Fraction(shape.knots[i] + shape.knots[i + 1], 2) for i in range(CURVE_SEGMENTS)]
    segment = floor(at)
    part = (shape.knots[segment] + exact_load(shape, t)) / 2 * (at - segment)
    return (periods * sum(areas) + sum(areas[:segment]) + part) * (1 << 16)


def integral(rules: ctypes.CDLL, shape: Curve, t: int) -> int:
    out = (ctypes.c_uint64 * 2)()
    rules.test_integral(packed(shape), t, out)
    return out[0] | out[1] << 64


@given(load=loads)
def test_a_curve_stays_between_minimum_and_maximum_and_closes(load: LoadSpec) -> None:
    shape = curve(load)

    low, high = (0, 0) if load.pattern == "idle" else (load.minimum, load.maximum)
    assert len(shape.knots) == CURVE_SEGMENTS + 1
    assert shape.knots[0] == shape.knots[-1]
    assert all(FULL * low // 100 <= knot <= -(-FULL * high // 100) <= FULL for knot in shape.knots)


@given(load=loads)
def test_the_integral_at_the_knots_is_the_sum_of_the_segments(load: LoadSpec) -> None:
    shape = curve(load)

    assert shape.cumulative == tuple(
        sum((shape.knots[i] + shape.knots[i + 1]) << 15 for i in range(n)) for n in range(CURVE_SEGMENTS + 1)
    )


@pytest.mark.parametrize("pattern", MOVING)
def test_moving_patterns_move_and_depend_on_nothing_but_the_spec(pattern: str) -> None:
    load = LoadSpec(pattern, 10, 90, 60.0, 7)

    assert curve(load) == curve(load)
    assert max(curve(load).knots) > min(curve(load).knots)


@pytest.mark.parametrize("pattern", [name for name in MOVING if name != "wave"])
def test_another_seed_is_another_curve(pattern: str) -> None:
    assert curve(LoadSpec(pattern, 0, 100, 60.0, 1)) != curve(LoadSpec(pattern, 0, 100, 60.0, 2))


def test_a_curve_is_the_same_in_every_release() -> None:
    assert curve(LoadSpec("inference", 0, 100, 60.0, 1)).knots[:4] == (21037, 36450, 61790, 12940)


def test_training_is_busy_nearly_all_the_time() -> None:
    knots = curve(LoadSpec("training", 0, 100, 60.0, 3)).knots[:-1]

    assert sum(knot > 0.9 * FULL for knot in knots) == 28
    assert sum(knot < 0.4 * FULL for knot in knots) == 4


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (LoadSpec("wavy"), "load.pattern: 'wavy' is none of idle, steady, wave, bursty, training, inference"),
        (LoadSpec("wave", 50, 20), "load.min, load.max: 50, 20 is not 0 <= min <= max <= 100"),
        (LoadSpec("wave", 0, 101), "load.min, load.max: 0, 101 is not 0 <= min <= max <= 100"),
        (LoadSpec("wave", period_s=0), "load.period_s: 0 is not between 0.01 and 10000000 seconds"),
        (LoadSpec("wave", period_s=float("nan")), "load.period_s: nan is not between 0.01 and 10000000 seconds"),
    ],
    ids=["pattern", "order", "range", "period", "nan"],
)
def test_impossible_loads_are_refused_by_key(load: LoadSpec, message: str) -> None:
    with pytest.raises(CurveError) as caught:
        curve(load)

    assert str(caught.value) == message


@given(load=loads, t=TIMES)
def test_load_in_c_is_exact_arithmetic_rounded_down(rules: ctypes.CDLL, load: LoadSpec, t: int) -> None:
    shape = curve(load)

    assert rules.test_load(packed(shape), t) == floor(exact_load(shape, t))


@given(load=loads, t=TIMES)
def test_integral_in_c_is_exact_arithmetic_rounded_down(rules: ctypes.CDLL, load: LoadSpec, t: int) -> None:
    shape = curve(load)

    assert integral(rules, shape, t) == floor(exact_integral(shape, t))


@given(load=loads, t=TIMES, later=st.integers(0, 10**12))
def test_the_integral_never_falls(rules: ctypes.CDLL, load: LoadSpec, t: int, later: int) -> None:
    shape = curve(load)

    assert integral(rules, shape, t) <= integral(rules, shape, t + later)


@given(load=loads, rates=st.tuples(*[st.floats(0, 1e9)] * 2), t0=TIMES, passed=st.integers(-(10**9), 10**15))
@examples(200)
def test_growth_in_c_is_exact_arithmetic_rounded_down(
    rules: ctypes.CDLL, load: LoadSpec, rates: tuple[float, float], t0: int, passed: int
) -> None:
    shape = curve(load)
    t = max(t0 + passed, 0)
    idle_rate, span_rate = shape.idle_rate(rates[0]), shape.span_rate(rates[1])

    grown = rules.test_growth(packed(shape), idle_rate, span_rate, t0, t)

    integrals = floor(exact_integral(shape, t)) - floor(exact_integral(shape, t0))
    assert grown == (max(idle_rate * (t - t0) + span_rate * integrals, 0) >> 48 if t > t0 else 0)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_a_counter_grows_by_its_rates_and_the_mean_load(rules: ctypes.CDLL, pattern: str) -> None:
    shape = curve(LoadSpec(pattern, 5, 95, 10.0, 4))
    mean = sum(shape.knots[:-1]) / CURVE_SEGMENTS / FULL
    start, hour = 10**12, 3600 * 10**9
    rates = shape.idle_rate(68_920.0), shape.span_rate(600_000.0)

    grown = rules.test_growth(packed(shape), *rates, start, start + hour)

    assert grown == pytest.approx(3600 * (68_920 + 600_000 * mean), rel=1e-6)


def test_a_gauge_under_a_steady_load_of_40_percent_reads_40_percent(rules: ctypes.CDLL) -> None:
    shape = curve(LoadSpec("steady", 40, 40, 10.0, 4))
    assert rules.test_gauge(struct.pack("<qqI4x", 0, 100, 0), packed(shape), 10**12) == 40


@given(load=loads, t=TIMES, base=st.integers(0, 1 << 40), span=st.integers(-(1 << 40), 1 << 40))
def test_a_gauge_follows_the_load(rules: ctypes.CDLL, load: LoadSpec, t: int, base: int, span: int) -> None:
    shape = curve(load)
    gauge = struct.pack("<qqI4x", base, span, 0)

    assert rules.test_gauge(gauge, packed(shape), t) == base + (span * floor(exact_load(shape, t)) + FULL // 2 >> 16)
