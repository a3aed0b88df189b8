"""What each device reads: the effective keys of a device turned into the values of cells, ready for the encoder.

Every value fits its cell: the schema has checked types, ranges, words and lengths. On top of the keys stand a few rules
of the hardware, each a short function here: what an architecture does not have is left out, and what one key implies
for another is filled in. Sources: the real captures (facts on boards and NVML) unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from simnode.nvml.cells import ARCHITECTURES, CELLS, FABRIC_STATES, NO_PERMISSION, NOT_SUPPORTED, Cell
from simnode.profile.document import Node, fields, find, items
from simnode.profile.identity import Identity, uuid_of
from simnode.profile.motion import Values, motion_of, move
from simnode.profile.schema import (
    DERIVED,
    FAILURE_MODES,
    HEALTH_SUMMARIES,
    MISCONFIGURATIONS,
    NO_PERMISSION_WORD,
    PROCESS_TYPES,
    THROTTLE_REASONS,
)
from simnode.profile.shapes import NOT_AVAILABLE, decimal, number, text, word
from simnode.state import (
    ClockTable,
    Counter,
    DeviceRuntime,
    EventSpec,
    LinkSpec,
    ProcessSpec,
    Refusal,
    Value,
)

GPU_IS_LOST = 15
XID_CRITICAL_ERROR = 0x8  # nvmlEventTypeXidCriticalError

# What DeviceSpec already carries.
IDENTITY = frozenset(
    [
        "name",
        "serial",
        "architecture",
        "compute_capability.major",
        "compute_capability.minor",
        "vbios_version",
        "memory.total_bytes",
        "pci.device_id",
        "pci.subsystem_id",
    ]
)
_ZERO_IS_UNSET = frozenset(
    [
        "memory.memory_bus_width",
        "num_gpu_cores",
        "thermal.temperature_memory_c",
        "thermal.shutdown_threshold_c",
        "thermal.slowdown_threshold_c",
        "thermal.max_operating_c",
        "pcie.max_link_gen",
        "pcie.current_link_gen",
        "pcie.device_max_link_gen",
        "pcie.host_max_link_gen",
        "pcie.max_link_width",
        "pcie.current_link_width",
        "clocks.graphics_app",
        "clocks.memory_app",
        "clocks.graphics_app_default",
        "clocks.memory_app_default",
    ]
)
_CELLS: dict[str, list[tuple[str, Cell]]] = {}  # the last part of the key and the cell, by what is before it
for _cell in CELLS:
    if _cell.key not in DERIVED:
        _CELLS.setdefault(_cell.key.rpartition(".")[0], []).append((_cell.key.rpartition(".")[2], _cell))
_LOCATIONS = {  # the counts that make a total, by the total's key
    f"{above}.total": tuple(f"{above}.{name}" for name, _ in cells if name != "total")
    for above, cells in _CELLS.items()
    if above.startswith("ecc.errors.")
}
_HEALTH_BITS = {"degraded_bandwidth": 0, "degraded_bw": 0, "route_recovery": 2, "route_unhealthy": 4}
_HEALTH_BITS |= {"access_timeout_recovery": 6, "partition_assigned": 12}
_NAME_BYTES = 215  # of a process, in the image
_MICROSECONDS_A_SECOND = 1e6
_MOST = (1 << 64) - 1
_COUNTERS = "clocks_throttle_reasons.counters."


Known = dict[int, tuple[Node, Value | None]]
"""What was read from a node, by the node's id."""


def device_runtime(
    device: Node,
    *,
    root: Node,
    index: int,
    identity: Identity,
    links: tuple[LinkSpec, ...],
    driver: tuple[str, bool],
    known: Known,
) -> DeviceRuntime:
    """The readings of one device. `driver` is the driver's version and whether it replaces the profile's own.

    What a node says is taken from `known` if it is there, and noted there if it is the profile's own.
    """
    values: Values = {}
    pinned: set[str] = set()
    for above, cells in _CELLS.items():
        table = fields(find(device, above) if above else device)
        for name, cell in cells:
            node = table.get(name)
            if node is None or node.value is None:
                continue
            before = known.get(id(node))
            value = _value(cell, node) if before is None else before[1]
            if value is not None:
                values[cell.key] = value
            if node.override:
                pinned.add(cell.key)
            elif before is None:
                known[id(node)] = node, value
    generation = ARCHITECTURES.get(word(find(device, "architecture"), tuple(ARCHITECTURES)) or "", 0)
    motion = motion_of(device, index)
    _identity(values, pinned, identity)
    _software(values, pinned, driver)
    _architecture(values, pinned, generation)
    _reliability(values, generation)
    _platform(values)
    _memory(values, device)
    _atomics(values)
    _power(values, pinned, generation)
    _thermal(values, generation)
    _clocks(values)
    _fan(values)
    _throttle(values, pinned, device)
    _ecc(values)
    _fabric(values, device)
    _nvlink(values, root)
    mode = failure_mode(device)
    if mode == "ecc_uncorrectable":
        _uncorrectable(values, generation)
    move(values, pinned, motion)
    _partitioned(values, pinned)
    for key in IDENTITY:
        values.pop(key, None)
    return DeviceRuntime(
        tuple(sorted(values.items())),
        motion.load,
        _supported_clocks(device),
        _processes(device),
        links,
        GPU_IS_LOST if mode in ("lost", "fallen_off_bus") else 0,
        _events(device),
    )


def failure_mode(device: Node) -> str | None:
    """The fault that is in force from the start, None if none is."""
    return word(find(device, "failure.mode"), FAILURE_MODES) if _trips_at_once(device) else None


def _value(cell: Cell, node: Node) -> Value | None:
    """What a key says for its cell; None leaves the cell unset."""
    if node.value == NOT_AVAILABLE:
        return None if cell.default is None else Refusal(NOT_SUPPORTED)
    if cell.kind == "text":
        return text(node) or None
    if cell.kind == "guid":
        return uuid_of(text(node)) if text(node) else None
    if cell.key == "fabric.health_summary":
        return HEALTH_SUMMARIES.get(word(node, tuple(HEALTH_SUMMARIES)) or "")
    if cell.key == "fabric.state":
        return word(node, (*FABRIC_STATES, "auto"))
    if cell.key == "power_smoothing.mode" and word(node, (NO_PERMISSION_WORD,)):
        return Refusal(NO_PERMISSION)
    if cell.choices:
        return word(node, tuple(cell.choices))
    value = number(node)
    return None if value == 0 and cell.key in _ZERO_IS_UNSET else value


def _identity(values: Values, pinned: set[str], identity: Identity) -> None:
    for key, own in (
        ("pdi", identity.pdi),
        ("platform.module_id", identity.module_id),
        ("platform.fabric_guid", identity.fabric_guid),
    ):
        if own is not None and key not in pinned:
            values[key] = own


def _software(values: Values, pinned: set[str], driver: tuple[str, bool]) -> None:
    """The GSP firmware is the driver's own; only an override may part them."""
    version, replaced = driver
    if "gsp_firmware.version" not in values or (replaced and "gsp_firmware.version" not in pinned):
        values["gsp_firmware.version"] = version


def _architecture(values: Values, pinned: set[str], generation: int) -> None:
    """Leave out what the architecture does not have, whatever a profile carries along; an override stays."""
    absent = []
    if generation >= ARCHITECTURES["ampere"]:
        absent.append("retired_pages.")  # rows are remapped instead
    else:
        absent.append("remapped_rows.")
    if generation > ARCHITECTURES["kepler"]:
        absent.append("gpu_operation_mode.")
    if generation < ARCHITECTURES["ada"]:
        absent.append("thermal.tlimit.")
    if not _has_mig(values):
        absent.append("mig.mode_")
    for key in [key for key in values if key.startswith(tuple(absent)) and key not in pinned]:
        del values[key]


def _has_mig(values: Values) -> bool:
    most = values.get("mig.max_gpu_instances")
    return isinstance(most, int) and most > 0


def _partitioned(values: Values, pinned: set[str]) -> None:
    """A GPU in MIG mode, which not every board has, tells no utilisation: it has no engines of its own any more."""
    if _has_mig(values) and values.get("mig.mode_current") == "enabled":
        for key in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa"):
            if f"utilization.{key}" not in pinned:
                values[f"utilization.{key}"] = Refusal(NOT_SUPPORTED)


def _reliability(values: Values, generation: int) -> None:
    """Since Ampere the driver tells whether a drain is due; remappings that wait are told beside those in force."""
    if generation >= ARCHITECTURES["ampere"]:
        values.setdefault("gpu_reset.drain_recommended", 0)
    if "remapped_rows.correctable" in values:
        values.setdefault("remapped_rows.correctable_inactive", 0)
        values.setdefault("remapped_rows.uncorrectable_inactive", 0)


def _memory(values: Values, device: Node) -> None:
    """What does not say how much of its memory is used uses none; `N/A` says something."""
    if find(device, "memory.used_bytes") is None:
        values["memory.used_bytes"] = 0


def _atomics(values: Values) -> None:
    """A GPU tells the atomics of both directions or of none; a direction without any has the empty mask."""
    directions = ("pcie.atomic_caps_outbound", "pcie.atomic_caps_inbound")
    if any(direction in values for direction in directions):
        for direction in directions:
            values.setdefault(direction, 0)


def _platform(values: Values) -> None:
    """Where a node knows its place in a chassis, the chassis' serial number may still be empty."""
    if "platform.host_id" in values:
        values.setdefault("platform.chassis_serial_number", "")


def _power(values: Values, pinned: set[str], generation: int) -> None:
    """What has no figure of its own follows its leader, and so does what an override of the leader would contradict."""
    followers = {
        "power.requested_limit_mw": "power.enforced_limit_mw",
        "power.module.requested_limit_mw": "power.module.enforced_limit_mw",
    }
    if generation >= ARCHITECTURES["ada"]:
        followers["power.average_draw_mw"] = "power.current_draw_mw"
    for follower, leader in followers.items():
        if leader in pinned and follower not in pinned:
            values.pop(follower, None)
            pinned.add(follower)
        _follow(values, follower, leader)
    values.setdefault("power.total_energy_consumption_mj", 0)
    if "power.current_draw_mw" not in values:
        del values["power.total_energy_consumption_mj"]


def _thermal(values: Values, generation: int) -> None:
    """Since Ada thresholds are told as distances from the highest operating temperature."""
    reference = values.get("thermal.max_operating_c")
    if generation < ARCHITECTURES["ada"] or not isinstance(reference, int):
        return
    values.setdefault("thermal.tlimit.reference_c", reference)
    values.setdefault("thermal.tlimit.max_operating_c", 0)
    for name in ("shutdown", "slowdown"):
        threshold = values.get(f"thermal.{name}_threshold_c")
        if isinstance(threshold, int):
            values.setdefault(f"thermal.tlimit.{name}_c", reference - threshold)


def _clocks(values: Values) -> None:
    _follow(values, "clocks.graphics_customer_boost_max", "clocks.graphics_max")
    _follow(values, "pcie.device_max_link_gen", "pcie.max_link_gen")


def _fan(values: Values) -> None:
    if not values.get("fan.count"):
        values.pop("fan.speed_percent", None)


def _throttle(values: Values, pinned: set[str], device: Node) -> None:
    """The reasons in force as one mask; a reason in force makes its counter run."""
    node = find(device, "clocks_throttle_reasons")
    if node is None:
        return
    flags = {reason: find(node, reason) for reason in THROTTLE_REASONS}
    values["clocks_throttle_reasons.active"] = sum(
        bit for reason, bit in THROTTLE_REASONS.items() if number(flags[reason])
    )
    pinned.update(f"clocks_throttle_reasons.{reason}" for reason, flag in flags.items() if flag and flag.override)
    for reason in THROTTLE_REASONS:
        start = values.get(f"{_COUNTERS}{reason}_us")
        if isinstance(start, int):
            rate = _MICROSECONDS_A_SECOND if number(flags[reason]) else 0.0
            values[f"{_COUNTERS}{reason}_us"] = Counter(start, rate, 0.0)


def _ecc(values: Values) -> None:
    """With ECC off there are no counts; a total that is not given is the sum of its locations."""
    if values.get("ecc.mode_current") != "enabled":
        for cell in CELLS:
            if cell.key.startswith(("ecc.errors.", "ecc.sram.")):
                values[cell.key] = Refusal(NOT_SUPPORTED)
        return
    for total, locations in _LOCATIONS.items():
        counts = [count for key in locations if isinstance(count := values.get(key), int)]
        if counts and total not in values:
            values[total] = min(sum(counts), _MOST)


def _fabric(values: Values, device: Node) -> None:
    """The health mask from its conditions (two bits each: 1 true, 2 false), and the summary from the mask."""
    health = find(device, "fabric.health")
    if health is not None and "fabric.health_mask" not in values:
        mask = 0
        for condition, shift in _HEALTH_BITS.items():
            flag = find(health, condition)
            if flag is not None:
                mask |= (1 if number(flag) else 2) << shift
        wrong = word(find(health, "incorrect_configuration"), MISCONFIGURATIONS)
        values["fabric.health_mask"] = mask | (MISCONFIGURATIONS.index(wrong) << 8 if wrong else 0)
    mask_value = values.get("fabric.health_mask")
    if isinstance(mask_value, int) and "fabric.health_summary" not in values:
        values["fabric.health_summary"] = _summary(mask_value)


def _summary(mask: int) -> int:
    if mask == 0:
        return HEALTH_SUMMARIES["not_supported"]
    if any(mask >> shift & 3 == 1 for shift in (2, 4, 6)) or mask >> 8 & 15 > 1:
        return HEALTH_SUMMARIES["unhealthy"]
    return HEALTH_SUMMARIES["limited_capacity"] if mask & 3 == 1 else HEALTH_SUMMARIES["healthy"]


def _nvlink(values: Values, root: Node) -> None:
    version = number(find(root, "nvlink.version"))
    if version:
        values.setdefault("nvlink.version", version)
    if number(find(root, "nvlink.c2c_enabled")):
        values.setdefault("c2c.mode", "enabled")


def _trips_at_once(device: Node) -> bool:
    """Only a failure without a trigger is in force from the start; one with a trigger waits for it, unseen."""
    return not number(find(device, "failure.after_calls")) and find(device, "failure.probability") is None


def _events(device: Node) -> tuple[EventSpec, ...]:
    """The XID of a failure that is in force, or of a failure block that has nothing else."""
    failure = find(device, "failure")
    code, mode = number(find(failure, "xid.code")), find(failure, "mode")
    inert = mode is not None and word(mode, FAILURE_MODES) in (None, "healthy")
    if code is None or inert or not _trips_at_once(device):
        return ()
    return (EventSpec(number(find(failure, "injection")) or 0, XID_CRITICAL_ERROR, code),)


def _uncorrectable(values: Values, generation: int) -> None:
    """One uncorrectable error in memory: since Ampere a row that could not be remapped, before it a page to retire."""
    if generation >= ARCHITECTURES["ampere"]:
        broken = "remapped_rows.uncorrectable"
        values["remapped_rows.failure_occurred"] = 1
    else:
        broken = "retired_pages.double_bit_retirement.count"
        values["retired_pages.pending_retirement"] = 1
    values[broken] = min(_count(values, broken) + 1, (1 << 32) - 1)
    for scope in ("volatile", "aggregate"):
        for location in ("device_memory", "total"):
            key = f"ecc.errors.{scope}.double_bit.{location}"
            if not isinstance(values.get(key), Refusal):
                values[key] = min(_count(values, key) + 1, _MOST)


def _count(values: Values, key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) else 0


def _follow(values: Values, key: str, leader: str) -> None:
    if leader in values:
        values.setdefault(key, values[leader])


def _supported_clocks(device: Node) -> tuple[ClockTable, ...]:
    tables = []
    for entry in items(find(device, "supported_clocks.memory_clocks")):
        steps = find(entry, "graphics_clocks")
        clocks = {number(clock) or 0 for clock in items(steps)} if items(steps) else set(_range(steps))
        tables.append(ClockTable(number(find(entry, "freq_mhz")) or 0, tuple(sorted(clocks, reverse=True))))
    return tuple(sorted(tables, key=lambda table: -table.memory_mhz))


def _range(steps: Node | None) -> Sequence[int]:
    """{from, to, step}: from the fastest down; half steps are cut off, as the driver does."""
    fastest, slowest = decimal(find(steps, "from")) or 0.0, decimal(find(steps, "to")) or 0.0
    step = decimal(find(steps, "step"))
    return _steps(fastest, slowest, step) if step else ()


@lru_cache(maxsize=256)
def _steps(fastest: float, slowest: float, step: float) -> tuple[int, ...]:
    count = int((fastest - slowest) / step) + 1
    return tuple(int(fastest - at * step) for at in range(count))


def _processes(device: Node) -> tuple[ProcessSpec, ...]:
    return tuple(
        ProcessSpec(
            number(find(entry, "pid")) or 0,
            word(find(entry, "type"), PROCESS_TYPES) or "C",
            _process_name(entry).encode()[:_NAME_BYTES].decode(errors="ignore"),
            (number(find(entry, "used_memory_mib")) or 0) << 20,
            *(number(find(entry, f"{engine}_util")) or 0 for engine in ("sm", "mem", "enc", "dec")),
        )
        for entry in items(find(device, "processes"))
    )


def _process_name(entry: Node) -> str:
    """A process without a name gets one: nvidia-smi's table passes over one that has none, as if it were not there."""
    name = text(find(entry, "name"))
    return name if name.strip() else f"process-{number(find(entry, 'pid'))}"
