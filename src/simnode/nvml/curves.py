"""The load curve of a device: what a `load:` key asks for, as the 33 knots that the image holds.

Every gauge and counter of a device follows this one curve, so utilisation, power, temperature and clocks move together.
A curve is a pure function of its LoadSpec: no clock, no randomness but the spec's seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, islice
from types import MappingProxyType

from msgspec import Struct

from simnode.nvml.layout import CURVE_SEGMENTS
from simnode.state import LoadSpec

FULL = 1 << 16
SHORTEST_S, LONGEST_S = 0.01, 1e7
_WORD = (1 << 64) - 1


class CurveError(ValueError):
    """Raised for a LoadSpec that no curve can follow; the text names the key and what would be right."""


class Curve(Struct, frozen=True):
    """`knots` are loads of 0 … 65536 at equal distances over one period, the last equal to the first.

    `inverse_period` is 2^64 / period in ns.
    """

    inverse_period: int
    knots: tuple[int, ...]

    @property
    def cumulative(self) -> tuple[int, ...]:
        """The integral at each knot, in 2^-32 segments of full load."""
        steps = (self.knots[i] + self.knots[i + 1] << 15 for i in range(CURVE_SEGMENTS))
        return tuple(accumulate(steps, initial=0))

    def idle_rate(self, per_second: float) -> int:
        """`per_second` in 2^-48 units a ns."""
        numerator, denominator = per_second.as_integer_ratio()
        return (numerator << 48) // (denominator * 10**9)

    def span_rate(self, per_second: float) -> int:
        """`per_second` at full load in 2^-48 units per unit of the integral.

        Of these, 2^-27 * inverse_period pass in a ns at full load.
        """
        numerator, denominator = per_second.as_integer_ratio()
        return (numerator << 75) // (denominator * 10**9 * self.inverse_period)


def curve(load: LoadSpec) -> Curve:
    """The curve of `load`."""
    if load.pattern not in PATTERNS:
        raise CurveError(f"load.pattern: {load.pattern!r} is none of {', '.join(PATTERNS)}")
    if not 0 <= load.minimum <= load.maximum <= 100:
        raise CurveError(f"load.min, load.max: {load.minimum}, {load.maximum} is not 0 <= min <= max <= 100")
    if not SHORTEST_S <= load.period_s <= LONGEST_S:
        raise CurveError(f"load.period_s: {load.period_s} is not between {SHORTEST_S} and {LONGEST_S:.0f} seconds")
    low, span = load.minimum / 100, (load.maximum - load.minimum) / 100
    shape = islice(PATTERNS[load.pattern](_uniform(load.seed)), CURVE_SEGMENTS)
    if load.pattern == "idle":
        low = span = 0
    knots = [round(FULL * (low + span * level)) for level in shape]
    return Curve((1 << 64) // round(load.period_s * 1e9), (*knots, knots[0]))


def _uniform(seed: int) -> Iterator[float]:
    """Numbers in 0 … 1 that are the same for ever: splitmix64 (Steele, Lea, Flood 2014)."""
    state = seed & _WORD
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
        yield (mixed ^ mixed >> 31) / _WORD


def _idle(_chance: Iterator[float]) -> Iterator[float]:
    while True:
        yield 0


def _steady(chance: Iterator[float]) -> Iterator[float]:
    """Around the middle, an eighth of the range to either side."""
    for value in chance:
        yield 0.375 + value / 4


def _wave(_chance: Iterator[float]) -> Iterator[float]:
    """One sine from the minimum to the maximum and back."""
    for segment in range(CURVE_SEGMENTS):
        yield (1 - math.cos(2 * math.pi * segment / CURVE_SEGMENTS)) / 2


def _bursty(chance: Iterator[float]) -> Iterator[float]:
    """The lowest and the highest quarter in turns of one to four segments."""
    while True:
        for floor in (0.0, 0.75):
            for _ in range(1 + int(next(chance) * 3.999)):
                yield floor + next(chance) / 4


def _training(chance: Iterator[float]) -> Iterator[float]:
    """Seven segments close to the maximum, then one of input or checkpointing."""
    while True:
        for _ in range(7):
            yield 0.92 + next(chance) * 0.08
        yield 0.1 + next(chance) * 0.2


def _inference(chance: Iterator[float]) -> Iterator[float]:
    """Requests as they come: mostly low, at times high."""
    for value in chance:
        yield value * value


PATTERNS: Mapping[str, Callable[[Iterator[float]], Iterator[float]]] = MappingProxyType(
    {
        "idle": _idle,
        "steady": _steady,
        "wave": _wave,
        "bursty": _bursty,
        "training": _training,
        "inference": _inference,
    }
)
