"""Turns a State into the bytes that a publish brings into a slot: the node's record, then one record per device.

Pure: equal States and Facts give equal bytes. Epochs and the anchors of counters are not a State's matter; the
publisher adds them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from simnode.nvml import layout
from simnode.nvml.cells import BY_KEY, DEVICE, NODE
from simnode.nvml.curves import Curve, CurveError, curve
from simnode.nvml.links import far_links
from simnode.nvml.mig import Partitions, put_partitions
from simnode.nvml.topology import Place, places
from simnode.nvml.values import ImageError, text, unset_device, write
from simnode.state import (
    ClockTable,
    DeviceRuntime,
    DeviceSpec,
    Facts,
    LinkSpec,
    ProcessSpec,
    SoftwareVersions,
    State,
    Value,
)

NONE = 0xFFFFFFFF
VERSION_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
PROCESS_TYPES = {"C": 1, "G": 2, "C+G": 3, "M": 4}
# nvmlIntNvLinkDeviceType_t
LINK_ENDS = {"gpu": 0, "switch": 2, "": 0xFF}
# The address of a switch that is on no PCI bus of the node: FFFFFFFF:FF:FF.0
HIDDEN_ADDRESS = (NONE, 0xFF, 0xFF)
# nvmlNvlinkVersion_t by NVLink's generation, and the generation that came with each architecture
LINK_VERSIONS = {1: 1, 2: 2, 3: 4, 4: 6, 5: 7, 6: 8}
LINK_GENERATIONS = {"pascal": 1, "volta": 2, "ampere": 3, "hopper": 4, "blackwell": 5}
# The share of its bandwidth that a link carries under full load (the profile's nvlink.defaults.duty_cycle)
LINK_DUTY = 0.05

# Values that others beside their own cell are made from
_LEADERS = {"nvlink.version", "fabric.state"}

_CURVE = struct.Struct(f"<Q{layout.CURVE_SEGMENTS + 1}I4x{layout.CURVE_SEGMENTS + 1}Q")
_PROCESS = struct.Struct(f"<IIQIIIIII{216}s")
_COUNTER = struct.Struct("<QQQ48xI4x")
_LINK = struct.Struct(f"<10IQQQ{layout.COUNTER.size}s{layout.COUNTER.size}s")


Records = tuple[bytes, ...]
"""The node's record, then one per device."""
_Parts = tuple[DeviceRuntime, tuple[object, ...]]


class Memory:
    """What earlier calls of `encode` made, and of what: places and far links of all devices, the record of each."""

    def __init__(self) -> None:
        self.places: tuple[object, tuple[tuple[Place, tuple[int, ...]], ...]] | None = None
        self.records: dict[int, tuple[_Parts, bytes]] = {}


def encode(state: State, facts: Facts = Facts(), memory: Memory | None = None) -> Records:  # noqa: B008  frozen
    """The node's and the devices' records for `state`. Raises ImageError for what no cell can hold.

    `facts` settle what follows the daemons of the node: a `fabric.state` of "auto". With the `memory` of an earlier
    call the record of a device that has not changed is the very same.
    """
    devices = state.devices
    if len(devices) > layout.MAX_DEVICES:
        raise ImageError(f"devices: {len(devices)} are more than {layout.MAX_DEVICES}")
    runtimes = (*state.runtime.devices, *[DeviceRuntime()] * (len(devices) - len(state.runtime.devices)))
    partitioned = {gpu.minor: gpu for gpu in state.mig.gpus}
    profiles = {minor: table.profiles for table in state.mig.tables for minor in table.minors}
    blocks = [_node(state)]
    memory = Memory() if memory is None else memory
    for at, (device, runtime, (place, far)) in enumerate(zip(devices, runtimes, _places(state, memory), strict=True)):
        partitions = Partitions(profiles.get(device.minor_number, ()), partitioned.get(device.minor_number))
        parts = runtime, (place, far, partitions, devices, state.switches, state.fabric, facts.fabric_ready)
        known = memory.records.get(at)
        if known is not None and known[0] == parts:
            blocks.append(known[1])
            continue
        try:
            block = _amended(known, parts)
            if block is None:
                block = _device(state, facts, device, runtime, place=place, far=far, partitions=partitions)
        except (ImageError, CurveError) as error:
            raise ImageError(f"device {device.index}: {error}") from None
        memory.records[at] = parts, block
        blocks.append(block)
    return tuple(blocks)


def _amended(known: tuple[_Parts, bytes] | None, parts: _Parts) -> bytes | None:
    """The record with a few other values than before; None if more than single cells is different."""
    if known is None or known[0][1] != parts[1]:
        return None
    old, new = known[0][0], parts[0]
    if msgspec.structs.replace(old, values=new.values, lost=new.lost, events=new.events) != new:
        return None
    before, after = dict(old.values), dict(new.values)
    changed = {key for key, value in after.items() if before.get(key) != value}
    if before.keys() != after.keys() or changed & _LEADERS:
        return None
    block, shape = bytearray(known[1]), curve(new.load)
    for key in changed:
        if key not in BY_KEY:
            return None
        write(block, BY_KEY[key], after[key], shape)
    struct.pack_into("<I", block, DEVICE.offsets["lost"], new.lost)
    return bytes(block)


def _places(state: State, memory: Memory) -> tuple[tuple[Place, tuple[int, ...]], ...]:
    """Of each device its place, and the far ends of its links."""
    links = tuple(runtime.links for runtime in state.runtime.devices)
    parts = (state.node_shape, state.devices, links)
    if memory.places is None or memory.places[0] != parts:
        far = (*far_links(state.devices, links), *[()] * (len(state.devices) - len(links)))
        memory.places = parts, tuple(zip(places(state), far, strict=True))
    return memory.places[1]


def bus_address(bus_id: str) -> tuple[int, int, int]:
    """Domain, bus and device of `DDDD:BB:DD.F`. Raises ImageError."""
    try:
        domain, bus, rest = bus_id.split(":")
        return int(domain, 16), int(bus, 16), int(rest.partition(".")[0], 16)
    except ValueError:
        raise ImageError(f"pci.bus_id: {bus_id!r} is not DDDD:BB:DD.F") from None


def _node(state: State) -> bytes:
    block = bytearray(NODE.size)
    at = NODE.offsets
    software = state.software
    struct.pack_into("<Q", block, at["generation"], state.generation)
    struct.pack_into("<II", block, at["device_count"], len(state.devices), _cuda(software))
    struct.pack_into("<I", block, at["init_code"], VERSION_MISMATCH if software.loaded_version else 0)
    for key in ("driver_version", "nvml_version"):
        encoded = _text(f"system.{key}", getattr(software, key), 80)
        block[at[key] : at[key] + len(encoded)] = encoded
    return bytes(block)


def _cuda(software: SoftwareVersions) -> int:
    """1000 * major + 10 * minor, as nvmlSystemGetCudaDriverVersion answers."""
    major, _, minor = software.cuda_version.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise ImageError(f"system.cuda_version: {software.cuda_version!r} is not MAJOR.MINOR")
    return int(major) * 1000 + int(minor) * 10


def _text(key: str, value: object, length: int) -> bytes:
    try:
        return text(value, length)
    except (TypeError, ValueError) as error:
        raise ImageError(f"{key}: {error}") from None


def _fabric_state(state: State, facts: Facts) -> str:
    """What "auto" stands for: as on real hardware, the fabric comes up once the fabric manager serves it."""
    waiting = state.fabric.manager_state_dir and not facts.fabric_ready
    return "in_progress" if waiting else "completed"


def _device(
    state: State,
    facts: Facts,
    device: DeviceSpec,
    runtime: DeviceRuntime,
    *,
    place: Place,
    far: tuple[int, ...],
    partitions: Partitions,
) -> bytes:
    block = bytearray(unset_device())
    at = DEVICE.offsets
    shape = curve(runtime.load)
    values = _identity(device) | dict(runtime.values)
    if values.get("fabric.state") == "auto":
        values["fabric.state"] = _fabric_state(state, facts)
    for key, value in values.items():
        if key not in BY_KEY:
            raise ImageError(f"{key}: there is no such value")
        write(block, BY_KEY[key], value, shape)
    _CURVE.pack_into(block, at["curve"], shape.inverse_period, *shape.knots, *shape.cumulative)
    struct.pack_into("<I", block, at["lost"], runtime.lost)
    for name in ("cpu_affinity", "memory_affinity", "ancestor", "p2p"):
        raw: bytes = getattr(place, name)
        block[at[name] : at[name] + len(raw)] = raw
    _clocks(block, runtime.supported_clocks)
    _processes(block, runtime.processes)
    generation = values.get("nvlink.version", LINK_GENERATIONS.get(device.architecture, 0))
    version = LINK_VERSIONS.get(generation, 0) if isinstance(generation, int) else 0
    _links(block, runtime.links, far, state=state, shape=shape, version=version)
    bar1 = values.get("bar1_memory.total_bytes")
    put_partitions(block, partitions, device.name, bar1 if isinstance(bar1, int) else 0)
    return bytes(block)


def _identity(device: DeviceSpec) -> dict[str, Value]:
    domain, bus, slot = bus_address(device.pci_bus_id)
    known: dict[str, Value] = {
        "name": device.name,
        "uuid": device.uuid,
        "serial": device.serial,
        "vbios_version": device.vbios_version,
        "minor_number": device.minor_number,
        "architecture": device.architecture,
        "compute_capability.major": device.compute_cap_major,
        "compute_capability.minor": device.compute_cap_minor,
        "memory.total_bytes": device.memory_total_bytes,
        # 32 bits: of a domain beyond FFFF (a VMD's begin at 10000) the upper ones are not in it
        "board_id": (domain << 16 | bus << 8 | slot) & 0xFFFFFFFF,
        "pci.domain": domain,
        "pci.bus": bus,
        "pci.device": slot,
        "pci.device_id": device.pci_device_id,
        "pci.subsystem_id": device.pci_subsystem_id,
    }
    return {key: value for key, value in known.items() if value != ""}


def _fit(block: bytearray, counter: str, key: str, items: Sequence[object], most: int) -> None:
    if len(items) > most:
        raise ImageError(f"{key}: {len(items)} are more than {most}")
    struct.pack_into("<I", block, DEVICE.offsets[counter], len(items))


def _pack(key: str, form: struct.Struct, block: bytearray, at: int, *values: object) -> None:
    try:
        form.pack_into(block, at, *values)
    except struct.error as error:
        raise ImageError(f"{key}: {error}") from None


def _clocks(block: bytearray, tables: tuple[ClockTable, ...]) -> None:
    _fit(block, "clocks_count", "supported_clocks", tables, layout.MAX_MEMORY_CLOCKS)
    for i, table in enumerate(tables):
        key = f"supported_clocks[{i}]"
        count = len(table.graphics_mhz)
        if count > layout.MAX_GRAPHICS_CLOCKS:
            raise ImageError(f"{key}.graphics: {count} are more than {layout.MAX_GRAPHICS_CLOCKS}")
        at = DEVICE.offsets["clocks"] + i * layout.CLOCKS.size
        _pack(key, struct.Struct(f"<II{count}H"), block, at, table.memory_mhz, count, *table.graphics_mhz)


def _processes(block: bytearray, processes: tuple[ProcessSpec, ...]) -> None:
    _fit(block, "process_count", "processes", processes, layout.MAX_PROCESSES)
    for i, process in enumerate(processes):
        key = f"processes[{i}]"
        if process.type not in PROCESS_TYPES:
            raise ImageError(f"{key}.type: {process.type!r} is none of {', '.join(PROCESS_TYPES)}")
        _pack(
            key, _PROCESS, block, DEVICE.offsets["process"] + i * layout.PROCESS.size,
            process.pid, PROCESS_TYPES[process.type], process.used_memory_bytes, NONE, NONE,
            process.sm_util, process.mem_util, process.enc_util, process.dec_util,
            _text(f"{key}.name", process.name, 216),
        )  # fmt: skip


def _links(
    block: bytearray, links: tuple[LinkSpec, ...], far: tuple[int, ...], *, state: State, shape: Curve, version: int
) -> None:
    _fit(block, "link_count", "nvlink.links", links, layout.MAX_LINKS)
    kib_per_second = state.fabric.bandwidth_per_link_mbps * 1e6 / 1024 * LINK_DUTY
    busy = _COUNTER.pack(0, 0, shape.span_rate(kib_per_second), 0)
    quiet = bytes(layout.COUNTER.size)
    gpus = {device.pci_bus_id: device for device in state.devices}
    switches = {switch.pci_bus_id: switch for switch in state.switches}
    for i, (link, number) in enumerate(zip(links, far, strict=True)):
        key = f"nvlink.links[{i}]"
        if link.remote_type not in LINK_ENDS:
            raise ImageError(f"{key}.remote_device_type: {link.remote_type!r} is none of gpu, switch")
        address, device_id = HIDDEN_ADDRESS, 0
        if link.remote_type == "switch" and link.remote_pci_bus_id in switches:
            address = bus_address(link.remote_pci_bus_id)
            device_id = switches[link.remote_pci_bus_id].pci_device_id
        elif link.remote_type == "gpu":
            peer = gpus.get(_peer(key, link, state))
            address = bus_address(link.remote_pci_bus_id) if peer is None else bus_address(peer.pci_bus_id)
            device_id = peer.pci_device_id if peer else 0
        elif not link.remote_type:
            address = (0, 0, 0)
        traffic = busy if link.active else quiet
        _pack(
            key, _LINK, block, DEVICE.offsets["link"] + i * layout.LINK.size,
            1, link.active, version, state.fabric.bandwidth_per_link_mbps, LINK_ENDS[link.remote_type],
            *address, device_id, number, 0, 0, 0, traffic, traffic,
        )  # fmt: skip


def _peer(key: str, link: LinkSpec, state: State) -> str:
    """The bus id of the GPU at the other end; its index says more than its bus id."""
    if link.remote_index < 0:
        return link.remote_pci_bus_id
    if link.remote_index >= len(state.devices):
        raise ImageError(f"{key}.remote_index: {link.remote_index} is none of the node's {len(state.devices)} GPUs")
    return state.devices[link.remote_index].pci_bus_id
