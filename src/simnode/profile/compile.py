"""Document + overrides + options + environment -> State: pure, and the only place where both halves of State are made.

Precedence: base (device_defaults < the entry of `devices`) < overrides for all < overrides for one device; for what is
not a device key, option > environment > profile. Faults that only the effective values show (memory that does not add
up, limits in the wrong order, a key missing everywhere) are raised here, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simnode.nvml import layout
from simnode.nvml.cells import ARCHITECTURES
from simnode.profile.consistency import DEFAULT_CORES_PER_NUMA
from simnode.profile.document import Document, Node, find, items
from simnode.profile.faults import Fault, ProfileError, in_order, quoted
from simnode.profile.identity import Identity, entries, gpu_count, identities, uuid_of
from simnode.profile.links import links, switches
from simnode.profile.overrides import Overrides, assignments, merge
from simnode.profile.runtime import device_runtime
from simnode.profile.schema import STATE_DIR
from simnode.profile.shapes import number, text, word
from simnode.profile.software import versions
from simnode.state import (
    MIGGPU,
    DeviceSpec,
    FabricState,
    IMEXState,
    MIGComputeInstance,
    MIGGPUInstance,
    MIGState,
    NetworkShape,
    NodeMeta,
    NodeShape,
    PCIeTopology,
    Runtime,
    State,
    VGPUGuestSpec,
)

DEFAULT_STATE_DIR = "/run/simnode/fabricmanager"
_REQUIRED = ("name", "architecture", "memory.total_bytes", "pci.device_id")
_NOTHING = Node({}, "")


@dataclass(frozen=True)
class Options:
    """What the command line adds. `overrides` are "KEY=VALUE" texts laid over every device."""

    gpus: int | None = None
    driver_version: str | None = None
    overrides: tuple[str, ...] = ()


def compile_state(
    document: Document,
    options: Options,
    environ: Mapping[str, str],
    generation: int = 1,
    overrides: Overrides = Overrides(),  # noqa: B008  frozen
) -> State:
    """The State that a checked document describes. Raises ProfileError with every fault found."""
    root = document.root
    faults: list[Fault] = []
    try:
        all_devices = merge(assignments(options.overrides), overrides.all)
    except ProfileError as error:
        faults.extend(error.faults)
        all_devices = _NOTHING
    software = versions(root, options.driver_version, environ, faults)
    count = gpu_count(root, options.gpus, environ, faults)
    surroundings = _Surroundings(environ, faults)
    devices = _effective(root, count, all_devices, overrides)
    for index, device in enumerate(devices):
        _check_device(root, index, device, faults)
    node = surroundings.node()
    fabric = _fabric(root, surroundings)
    imex = _imex(root, surroundings)
    caps_major = surroundings.major("SIMNODE_CAPS_MAJOR")
    if faults:
        raise ProfileError(in_order(faults))
    made, roots = identities(root, count)
    replaced = software.driver_version != text(find(root, "system.driver_version"))
    per_gpu = links(root, [identity.pci_bus_id for identity in made])
    cores = number(find(root, "pcie_topology.cores_per_numa"))
    return State(
        generation=generation,
        node=node,
        software=software,
        node_shape=NodeShape(count, PCIeTopology(roots, cores or DEFAULT_CORES_PER_NUMA), _network(root, count)),
        devices=tuple(_spec(index, device, made[index]) for index, device in enumerate(devices)),
        switches=switches(root),
        fabric=fabric,
        imex=imex,
        mig=_mig(root, made, caps_major),
        config_raw=document.raw,
        runtime=Runtime(
            tuple(
                device_runtime(
                    device,
                    root=root,
                    index=index,
                    identity=made[index],
                    links=per_gpu[index],
                    driver=(software.driver_version, replaced),
                )
                for index, device in enumerate(devices)
            )
        ),
    )


class _Surroundings:
    """The environment's part of a State; what is wrong with a variable is a fault that names it."""

    def __init__(self, environ: Mapping[str, str], faults: list[Fault]) -> None:
        self._environ = environ
        self._faults = faults

    def node(self) -> NodeMeta:
        return NodeMeta(self._host_name("NODE_NAME"), self._host_name("HOSTNAME"))

    def flag(self, name: str) -> bool | None:
        written = self._environ.get(name, "")
        words = {"true": True, "1": True, "false": False, "0": False}
        if written and written.lower() not in words:
            self._fault(name, f"must be true or false, not {quoted(written)}")
        return words.get(written.lower())

    def major(self, name: str) -> int | None:
        written = self._environ.get(name, "")
        if not written:
            return None
        if not (written.isascii() and written.isdigit() and len(written) <= 4 and 1 <= int(written) <= 4095):
            self._fault(name, f"must be a device major from 1 to 4095, not {quoted(written)}")
            return None
        return int(written)

    def directory(self, name: str) -> str:
        written = self._environ.get(name, "").strip()
        if written and (STATE_DIR.pattern is None or not STATE_DIR.pattern.fullmatch(written)):
            self._fault(name, f"must be {STATE_DIR.expect}, not {quoted(written)}")
        return written

    def _host_name(self, name: str) -> str:
        written = self._environ.get(name, "")
        if len(written) > 253 or "/" in written or not written.isprintable() or written in (".", ".."):
            self._fault(name, f"must be a host's name, not {quoted(written)}")
        return written

    def _fault(self, name: str, message: str) -> None:
        self._faults.append(Fault("environment", name, None, message))


def _effective(root: Node, count: int, all_devices: Node, overrides: Overrides) -> tuple[Node, ...]:
    defaults = find(root, "device_defaults") or _NOTHING
    listed = entries(root)
    patched: dict[int, Node] = {}
    made = []
    for index in range(count):
        entry = listed.get(index, _NOTHING)
        device = patched.get(id(entry))
        if device is None:
            device = patched[id(entry)] = merge(merge(defaults, entry), all_devices)
        own = overrides.devices.get(index)
        made.append(device if own is None else merge(device, own))
    return tuple(made)


def _check_device(root: Node, index: int, device: Node, faults: list[Fault]) -> None:
    for key in _REQUIRED:
        if not text(find(device, key)):
            defaults = find(root, "device_defaults") or root
            faults.append(Fault(root.file, f"device_defaults.{key}", defaults.line, "is missing"))

    def amount(key: str) -> int | None:
        return number(find(device, key))

    def fault(key: str, message: str) -> None:
        node = find(device, key)
        if node is not None:
            faults.append(Fault(node.file, _origin(root, index, key), node.line, message))

    total = amount("memory.total_bytes") or 0
    used, reserved = amount("memory.used_bytes") or 0, amount("memory.reserved_bytes") or 0
    if total and used + reserved > total:
        key = "memory.used_bytes" if used else "memory.reserved_bytes"
        fault(key, f"{used} used and {reserved} reserved bytes are more than the total of {total}")
    bar1_total, bar1_used = amount("bar1_memory.total_bytes"), amount("bar1_memory.used_bytes") or 0
    if bar1_total is not None and bar1_used > bar1_total:
        fault("bar1_memory.used_bytes", f"{bar1_used} is more than the total of {bar1_total}")
    low, high = amount("power.min_limit_mw"), amount("power.max_limit_mw")
    if low is not None and high is not None and low > high:
        fault("power.min_limit_mw", f"{low} is more than power.max_limit_mw, {high}")
    for name in ("enforced_limit_mw", "default_limit_mw", "requested_limit_mw"):
        limit = amount(f"power.{name}")
        if limit is not None and low is not None and high is not None and low <= high and not low <= limit <= high:
            fault(f"power.{name}", f"{limit} must lie from power.min_limit_mw, {low}, to power.max_limit_mw, {high}")
    slowdown, shutdown = amount("thermal.slowdown_threshold_c"), amount("thermal.shutdown_threshold_c")
    if slowdown and shutdown and slowdown > shutdown:
        fault("thermal.slowdown_threshold_c", f"{slowdown} is above thermal.shutdown_threshold_c, {shutdown}")
    least, most = amount("load.min") or 0, amount("load.max")
    if most is not None and least > most:
        fault("load.min", f"{least} is more than load.max, {most}")
    for entry in items(find(device, "supported_clocks.memory_clocks")):
        fastest, slowest = number(find(entry, "graphics_clocks.from")), number(find(entry, "graphics_clocks.to"))
        step = find(entry, "graphics_clocks.step")
        if fastest is not None and slowest is not None and step is not None and isinstance(step.value, (int, float)):
            steps = (fastest - slowest) / step.value
            if not 0 <= steps < layout.MAX_GRAPHICS_CLOCKS:
                message = f"must give 1 to {layout.MAX_GRAPHICS_CLOCKS} clocks, from the fastest down"
                faults.append(Fault(step.file, "supported_clocks.memory_clocks.graphics_clocks", step.line, message))


def _origin(root: Node, index: int, key: str) -> str:
    """The path of the place that a device's key comes from."""
    for at, entry in enumerate(items(find(root, "devices"))):
        if (number(find(entry, "index")) if find(entry, "index") else at) == index and find(entry, key) is not None:
            return f"devices[{at}].{key}"
    return f"device_defaults.{key}" if find(root, f"device_defaults.{key}") is not None else key


def _spec(index: int, device: Node, identity: Identity) -> DeviceSpec:
    guest, serial = find(device, "vgpu_guest"), find(device, "serial")
    return DeviceSpec(
        index=index,
        uuid=identity.uuid,
        minor_number=identity.minor_number,
        serial=text(serial) if serial is not None and serial.override else identity.serial,
        pci_bus_id=identity.pci_bus_id,
        name=text(find(device, "name")),
        architecture=word(find(device, "architecture"), tuple(ARCHITECTURES)) or "",
        compute_cap_major=number(find(device, "compute_capability.major")) or 0,
        compute_cap_minor=number(find(device, "compute_capability.minor")) or 0,
        memory_total_bytes=number(find(device, "memory.total_bytes")) or 0,
        pci_device_id=number(find(device, "pci.device_id")) or 0,
        pci_subsystem_id=number(find(device, "pci.subsystem_id")) or 0,
        vbios_version=text(find(device, "vbios_version")),
        vgpu_guest=None
        if guest is None
        else VGPUGuestSpec(text(find(guest, "host_driver_version")), text(find(guest, "host_driver_branch"))),
    )


def _fabric(root: Node, surroundings: _Surroundings) -> FabricState:
    nvlink = find(root, "nvlink")
    directory = surroundings.directory("SIMNODE_FABRICMANAGER_STATE_DIR")
    if not directory:
        directory = text(find(root, "fabricmanager.state_dir"))
        enabled = find(root, "fabricmanager.enabled")
        if enabled is not None:
            directory = (directory or DEFAULT_STATE_DIR) if number(enabled) else ""
    cluster = text(find(root, "device_defaults.fabric.cluster_uuid"))
    return FabricState(
        enabled=nvlink is not None,
        manager_state_dir=directory,
        cluster_uuid=uuid_of(cluster) if cluster else "",
        clique_id=number(find(root, "device_defaults.fabric.clique_id")) or 0,
        links_per_gpu=number(find(nvlink, "links_per_gpu")) or 0,
        bandwidth_per_link_mbps=number(find(nvlink, "bandwidth_per_link_mbps")) or 0,
    )


def _imex(root: Node, surroundings: _Surroundings) -> IMEXState:
    enabled = surroundings.flag("SIMNODE_IMEX")
    if enabled is None:
        enabled = bool(number(find(root, "imex.enabled")))
    major = surroundings.major("SIMNODE_IMEX_MAJOR") or number(find(root, "imex.imex_major"))
    caps = surroundings.major("SIMNODE_CAPS_MAJOR") or number(find(root, "imex.caps_major"))
    default = IMEXState()
    return IMEXState(enabled, major or default.imex_major, caps or default.caps_major)


def _mig(root: Node, made: tuple[Identity, ...], caps_major: int | None) -> MIGState:
    caps = caps_major or number(find(root, "mig.caps_major")) or number(find(root, "imex.caps_major"))
    gpus = []
    for entry in items(find(root, "mig.gpus")):
        index = number(find(entry, "index")) or 0
        if index >= len(made):
            continue
        instances = tuple(
            MIGGPUInstance(
                number(find(instance, "id")) or 0,
                tuple(
                    MIGComputeInstance(number(find(compute, "id")) or 0, text(find(compute, "uuid")))
                    for compute in items(find(instance, "compute_instances"))
                ),
            )
            for instance in items(find(entry, "gpu_instances"))
        )
        gpus.append(MIGGPU(made[index].minor_number, instances))
    return MIGState(caps or MIGState().caps_major, tuple(gpus))


def _network(root: Node, count: int) -> NetworkShape:
    """The adapters, every field resolved; the figures of a ConnectX-7 stand in for what the profile does not say."""
    block = find(root, "infiniband")
    if block is None or not number(find(block, "enabled")):
        return NetworkShape()
    adapters = number(find(block, "hca_count"))
    per_gpu = number(find(block, "hcas_per_gpu"))
    rate = number(find(block, "rate_gbps"))

    def said(key: str, default: str) -> str:
        return text(find(block, key)) or default

    return NetworkShape(
        ib_enabled=True,
        hca_count=count * (1 if per_gpu is None else per_gpu) if adapters is None else adapters,
        hca_type=said("hca_type", "MT4129"),
        fw_version=said("fw_version", "28.39.2048"),
        hw_rev=said("hw_rev", "0x0"),
        board_id=said("board_id", "MT_0000000838"),
        node_desc_template=said("node_desc_template", "{node_name} mlx5_{idx}"),
        link_layer=said("link_layer", "InfiniBand"),
        rate_gbps=400 if rate is None else rate,
        port_state=said("port_state", "ACTIVE"),
        phys_state=said("phys_state", "LinkUp"),
        guid_prefix=said("guid_prefix", "a088c2:0300:ab"),
    )
