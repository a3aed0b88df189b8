"""How a device's readings follow its load: gauges over one curve, so that they move together.

A gauge reads `base` at load 0, which is what the profile says, and `base + span` at full load; what full load means is
derived here from the device's limits. A value that an override sets is pinned and does not move. The curve itself is
made from the `LoadSpec` by the encoder.

`load:` (and `dynamic_metrics.utilization`, its predecessor) moves everything. `dynamic_metrics.temperature` and
`.power` give the range of their gauge; alone they move only it.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from simnode.profile.document import Node, find
from simnode.profile.schema import DYNAMIC_PATTERNS, PATTERNS, THROTTLE_REASONS
from simnode.profile.shapes import number, word
from simnode.state import Counter, Gauge, LoadSpec, Value

Values = dict[str, Value]

_POWER_AT_FULL_LOAD = 0.95  # of the enforced limit: short of the software power cap
_MEMORY_POWER_AT_FULL_LOAD = 0.15  # of the enforced limit, on top of idle
_MEMORY_AT_FULL_LOAD = 0.9  # of what is not reserved
_PCIE_AT_FULL_LOAD = 0.2  # of the link's payload rate
_MEMORY_UTILIZATION_AT_FULL_LOAD = 60
_WARMING_C = 40  # at full load over idle, if the limits leave room
_MARGIN_C = 8
_ENERGY = "power.total_energy_consumption_mj"
_PCIE_LANE_KBPS = {1: 250_000, 2: 500_000, 3: 985_000, 4: 1_969_000, 5: 3_938_000, 6: 7_563_000, 7: 15_125_000}
_RESIDENT = ("training", "inference")  # patterns that keep their memory whatever the load
_FULL_CLOCK = ("training",)


_IDLE = LoadSpec()


class Motion(Struct, frozen=True):
    """How one device moves. `coherent`: everything follows the load. Ranges are (lowest, highest)."""

    load: LoadSpec = _IDLE
    coherent: bool = False
    memory_percent: tuple[int, int] | None = None
    temperature_c: tuple[int, int] | None = None
    power_mw: tuple[int, int] | None = None


def motion_of(device: Node, index: int) -> Motion:
    """What `load` and `dynamic_metrics` ask for; devices of one node differ by their index added to the seed."""
    load, dynamic = find(device, "load"), find(device, "dynamic_metrics")
    if load is not None:
        pattern = word(find(load, "pattern"), PATTERNS) or "steady"
        if pattern == "idle":
            return Motion()
        minimum, maximum = number(find(load, "min")), number(find(load, "max"))
        spec = LoadSpec(
            pattern,
            minimum or 0,
            100 if maximum is None else maximum,
            _seconds(find(load, "period_s"), 60.0),
            (number(find(load, "seed")) or 0) + index,
        )
        return Motion(spec, coherent=True)
    if dynamic is None:
        return Motion()
    seed = (number(find(dynamic, "seed")) or 0) + index
    utilization = find(dynamic, "utilization")
    temperature, power = _temperature(dynamic), _power(dynamic)
    if utilization is None:
        if temperature is None and power is None:
            return Motion()
        period = _seconds(find(dynamic, "temperature.ramp_period_sec"), 60.0)
        return Motion(LoadSpec("wave", 0, 100, period, seed), False, None, temperature, power)
    spec, memory = _utilization(utilization, seed)
    return Motion(spec, True, memory, temperature, power)


def move(values: Values, pinned: Collection[str], motion: Motion) -> None:
    """Turn the constants of `values` into gauges as `motion` says, and the energy into a counter of the power."""
    mover = _Mover(values, pinned, motion)
    if motion.coherent:
        mover.utilization()
        mover.power()
        mover.temperature()
        mover.clocks()
        mover.memory()
        mover.pcie()
        mover.throttle()
    mover.ranges()
    mover.energy()


class _Mover:
    def __init__(self, values: Values, pinned: Collection[str], motion: Motion) -> None:
        self.values = values
        self.pinned = pinned
        self.motion = motion

    def utilization(self) -> None:
        self._set("utilization.gpu", 0, 100)
        load = self.motion.load
        low, high = self.motion.memory_percent or (0, 0)
        if self.motion.memory_percent is None:
            self._set("utilization.memory", 0, _MEMORY_UTILIZATION_AT_FULL_LOAD)
        elif load.maximum == load.minimum:
            self._set("utilization.memory", high, high)
        else:
            span = (high - low) * 100 // (load.maximum - load.minimum)
            base = low - span * load.minimum // 100
            if base < 0:  # too steep for a line through a gauge: keep the highest value
                base, span = 0, high * 100 // load.maximum
            self._set("utilization.memory", base, base + span)

    def power(self) -> None:
        for scope in ("power", "power.module"):
            limit = self._constant(f"{scope}.enforced_limit_mw")
            if limit is not None:
                for reading in ("current_draw_mw", "average_draw_mw"):
                    self._rise(f"{scope}.{reading}", int(limit * _POWER_AT_FULL_LOAD))
        limit = self._constant("power.enforced_limit_mw") or 0
        for reading in ("current_draw_mw", "average_draw_mw"):
            idle = self._constant(f"power.memory.{reading}")
            if idle is not None:
                self._rise(f"power.memory.{reading}", idle + int(limit * _MEMORY_POWER_AT_FULL_LOAD))

    def temperature(self) -> None:
        ceilings = {
            "thermal.temperature_gpu_c": ("thermal.max_operating_c", "thermal.slowdown_threshold_c"),
            "thermal.temperature_memory_c": ("thermal.memory_max_c", "thermal.max_operating_c"),
        }
        for key, limits in ceilings.items():
            idle = self._constant(key)
            if idle is not None:
                known = [limit for limit in map(self._constant, limits) if limit]
                top = idle + _WARMING_C
                self._rise(key, min(top, known[0] - _MARGIN_C) if known else top)

    def clocks(self) -> None:
        for clock in ("graphics", "sm", "memory", "video"):
            top = self._constant(f"clocks.{clock}_max")
            if top is not None:
                low = top if self.motion.load.pattern in _FULL_CLOCK else None
                self._rise(f"clocks.{clock}_current", top, low)

    def memory(self) -> None:
        total, reserved = self._constant("memory.total_bytes"), self._constant("memory.reserved_bytes") or 0
        if total is not None:
            top = int((total - reserved) * _MEMORY_AT_FULL_LOAD) >> 20 << 20
            self._rise("memory.used_bytes", top, top if self.motion.load.pattern in _RESIDENT else None)

    def pcie(self) -> None:
        generation, lanes = self._constant("pcie.current_link_gen"), self._constant("pcie.current_link_width")
        if generation is not None and lanes is not None:
            top = int(_PCIE_LANE_KBPS.get(generation, 0) * lanes * _PCIE_AT_FULL_LOAD)
            for direction in ("tx", "rx"):
                self._rise(f"pcie.{direction}_throughput_kbps", top)

    def throttle(self) -> None:
        """A device under load is not idle; below the power cap nothing else holds its clocks."""
        active = self._constant("clocks_throttle_reasons.active")
        if active is not None and "clocks_throttle_reasons.gpu_idle" not in self.pinned:
            self.values["clocks_throttle_reasons.active"] = active & ~THROTTLE_REASONS["gpu_idle"]

    def ranges(self) -> None:
        """Apply the explicit ranges of dynamic_metrics, within what the device allows."""
        if self.motion.temperature_c is not None:
            low, high = self.motion.temperature_c
            ceiling = self._constant("thermal.shutdown_threshold_c") or high
            self._set("thermal.temperature_gpu_c", min(max(low, 0), ceiling), min(max(high, 0), ceiling))
        if self.motion.power_mw is not None:
            floor = self._constant("power.min_limit_mw") or 0
            ceiling = self._constant("power.max_limit_mw") or self.motion.power_mw[1]
            low, high = (min(max(value, floor), ceiling) for value in self.motion.power_mw)
            for key in ("power.current_draw_mw", "power.average_draw_mw"):
                self._set(key, low, high)

    def energy(self) -> None:
        """Energy is the integral of power: 1 mW is 1 mJ/s."""
        start = self.values.get(_ENERGY)
        power = self.values.get("power.current_draw_mw")
        if isinstance(start, int):
            idle = power.base if isinstance(power, Gauge) else power if isinstance(power, int) else 0
            span = power.span if isinstance(power, Gauge) else 0
            self.values[_ENERGY] = Counter(start, float(idle), float(span))

    def _constant(self, key: str) -> int | None:
        value = self.values.get(key)
        return value if isinstance(value, int) else None

    def _rise(self, key: str, top: int, low: int | None = None) -> None:
        idle = self._constant(key)
        if idle is not None:
            base = idle if low is None else low
            self._set(key, base, max(top, base))

    def _set(self, key: str, low: int, high: int) -> None:
        if isinstance(self.values.get(key), int) and key not in self.pinned:
            self.values[key] = Gauge(low, high - low) if high != low else low


def _utilization(node: Node, seed: int) -> tuple[LoadSpec, tuple[int, int]]:
    """A utilisation block as load and memory range; both bounds 0 mean 0…100, as its authors have it."""
    gpu = _bounds(node, "gpu")
    memory = _bounds(node, "memory")
    pattern = word(find(node, "pattern"), DYNAMIC_PATTERNS) or "steady"
    period = _seconds(find(node, "burst_period_sec"), 30.0)
    quarter, memory_quarter = (gpu[1] - gpu[0]) // 4, (memory[1] - memory[0]) // 4
    if pattern == "burst":  # each half of our period is one of theirs
        return LoadSpec("bursty", *gpu, period * 2, seed), memory
    if pattern == "idle":
        gpu, memory = (gpu[0], gpu[0] + quarter), (memory[0], memory[0] + memory_quarter)
    elif pattern == "busy":
        gpu, memory = (gpu[1] - quarter, gpu[1]), (memory[1] - memory_quarter, memory[1])
    return LoadSpec("steady", *gpu, 60.0, seed), memory


def _bounds(node: Node, unit: str) -> tuple[int, int]:
    low, high = number(find(node, f"{unit}_min")) or 0, number(find(node, f"{unit}_max")) or 0
    return (low, max(low, high)) if low or high else (0, 100)


def _temperature(dynamic: Node) -> tuple[int, int] | None:
    base = number(find(dynamic, "temperature.base_c"))
    if base is None:
        return None
    variance = number(find(dynamic, "temperature.variance_c")) or 0
    return base - variance, base + variance + (number(find(dynamic, "temperature.ramp_c")) or 0)


def _power(dynamic: Node) -> tuple[int, int] | None:
    base = number(find(dynamic, "power.base_mw"))
    if base is None:
        return None
    variance = number(find(dynamic, "power.variance_mw")) or 0
    return base - variance, base + variance


def _seconds(node: Node | None, default: float) -> float:
    return float(node.value) if node is not None and isinstance(node.value, (int, float)) else default
