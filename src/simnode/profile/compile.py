"""Document + overrides + options + environment -> State: pure, and the only place where both halves of State are made.

Precedence of device keys: base (device_defaults < the entry of `devices` < the topology document's clique) < options <
overrides for all < overrides for one device; for the rest, override > option > environment > profile. Faults that only
the effective values show (memory that does not add up, limits in the wrong order, a key missing everywhere) are raised
here, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from simnode.nvml.cells import ARCHITECTURES
from simnode.nvml.layout import MAX_DEVICES
from simnode.partitions import MIGState
from simnode.profile.catalogue import Lacks
from simnode.profile.consistency import DEFAULT_CORES_PER_NUMA, check_consistency
from simnode.profile.devices import NO_KEYS, base_devices, check_complete, check_documented, check_values
from simnode.profile.document import Document, Node, find
from simnode.profile.faults import Fault, ProfileError, in_order
from simnode.profile.identity import Identity, gpu_count, identities
from simnode.profile.links import links, switches
from simnode.profile.mig import in_force, in_mode, layouts, tables
from simnode.profile.overrides import Overrides, assignments, merge
from simnode.profile.pci import bridges, reserved
from simnode.profile.runtime import Known, device_runtime, failure_mode
from simnode.profile.sections import caps_major_of, check_majors, fabric_of, imex_of, network_of
from simnode.profile.shapes import number, text, word
from simnode.profile.software import versions
from simnode.profile.surroundings import Surroundings, shadowed
from simnode.profile.topology import Topology, placed
from simnode.state import (
    DeviceRuntime,
    DeviceSpec,
    LinkSpec,
    NodeShape,
    PCIeLinkSpec,
    PCIeTopology,
    Runtime,
    SoftwareVersions,
    State,
    VGPUGuestSpec,
)

_NO_OVERRIDES = Overrides()
_NO_TOPOLOGY = Topology()


class Options(Struct, frozen=True):
    """What the command line adds. `overrides` are "KEY=VALUE" texts laid over every device."""

    gpus: int | None = None
    driver_version: str | None = None
    overrides: tuple[str, ...] = ()


def compile_state(
    document: Document,
    options: Options,
    environ: Mapping[str, str],
    generation: int = 1,
    overrides: Overrides = _NO_OVERRIDES,
) -> State:
    """The State that a checked document describes. Raises ProfileError with every fault found."""
    return Compiler(document, options, environ).compile(overrides, generation)


def lacking(options: Options, environ: Mapping[str, str]) -> Lacks:
    """What finds, in a document that is wrong elsewhere, the keys without which there is no State."""

    def lacks(root: Node) -> list[Fault]:
        faults: list[Fault] = []
        versions(root, options.driver_version, environ, faults)
        count = gpu_count(root, options.gpus, environ, faults)
        for index, base in enumerate(_bases(root, min(max(count, 0), MAX_DEVICES), options, faults)):
            check_complete(root, index, base, faults)
        return faults

    return lacks


class _Frame(Struct, frozen=True):
    """All of a State but what the devices' own keys say."""

    root: Node
    state: State
    bases: tuple[Node, ...]
    made: tuple[Identity, ...]
    links: tuple[tuple[LinkSpec, ...], ...]
    driver: tuple[str, bool]
    faults: tuple[Fault, ...]


class _Device(Struct, frozen=True):
    """One device as it was compiled from these two nodes of the overrides."""

    all: Node
    own: Node | None
    spec: DeviceSpec
    runtime: DeviceRuntime


class Compiler(Struct):
    """Compiles one document time and again as the overrides change; what did not change is not made anew.

    Unchanged means the very same nodes: a change of one device costs one device. For one thread at a time.
    """

    document: Document
    options: Options
    environ: Mapping[str, str]
    topology: Topology = _NO_TOPOLOGY
    mig_profiles: bytes = b""
    _sections: Node | None = None
    _frame: _Frame | None = None
    _devices: dict[int, _Device] = field(default_factory=dict)
    _known: Known = field(default_factory=dict)

    def compile(self, overrides: Overrides = _NO_OVERRIDES, generation: int = 1) -> State:
        """The State with these overrides. Raises ProfileError with every fault found."""
        frame = self._framed(overrides.node)
        faults = list(frame.faults)
        made = tuple(self._device(frame, index, overrides, faults) for index in range(len(frame.bases)))
        if faults:
            raise ProfileError(in_order(faults))
        state = frame.state
        devices = [(device.spec, device.runtime) for device in made if device is not None]
        mig = in_force(state.mig, devices, lambda index: self.effective(index, overrides), faults)
        if faults:
            raise ProfileError(in_order(faults))
        return State(
            generation=generation,
            node=state.node,
            software=state.software,
            node_shape=state.node_shape,
            devices=tuple(spec for spec, _ in devices),
            switches=state.switches,
            fabric=state.fabric,
            imex=state.imex,
            mig=mig,
            config_raw=state.config_raw,
            topology_raw=state.topology_raw,
            mig_profiles_raw=state.mig_profiles_raw,
            runtime=Runtime(tuple(runtime for _, runtime in devices)),
        )

    def effective(self, index: int, overrides: Overrides = _NO_OVERRIDES) -> Node:
        """The merged keys of one device; without overrides, what the other layers say."""
        keys = merge(self._framed(overrides.node).bases[index], overrides.all)
        own = overrides.devices.get(index)
        return keys if own is None else merge(keys, own)

    def _framed(self, sections: Node) -> _Frame:
        if self._frame is None or self._sections is not sections:
            self._frame, self._sections = self._make_frame(sections), sections
            self._devices, self._known = {}, {}
        return self._frame

    def _make_frame(self, sections: Node) -> _Frame:
        faults: list[Fault] = []
        driver, count = text(find(sections, "system.driver_version")), number(find(sections, "system.num_devices"))
        root = _patched(self.document.root, sections, faults)
        environ = shadowed(self.environ, sections)
        software = versions(root, driver or self.options.driver_version, environ, faults)
        gpus = gpu_count(root, self.options.gpus if count is None else count, environ, faults)
        surroundings = Surroundings(environ, faults)
        node = surroundings.node()
        place = self.topology.places.get(node.node_name)
        bases = _bases(root, gpus, self.options, faults)
        if place is not None:
            bases = tuple(placed(base, place) for base in bases)
        for index, base in enumerate(bases):
            check_complete(root, index, base, faults)
        fabric, imex = fabric_of(root, surroundings, place), imex_of(root, surroundings)
        caps_major = caps_major_of(root, surroundings)
        check_majors(root, imex, faults)
        made, roots = ((), ()) if faults else identities(root, gpus, reserved(root))
        release = int(software.driver_version.partition(".")[0]) if made else 0
        mig = MIGState(
            caps_major,
            layouts(root, bases[: len(made)], made, release, faults),
            tables(bases[: len(made)], made, release),
        )
        cores = number(find(root, "pcie_topology.cores_per_numa"))
        on_bus = (*(identity.pci_bus_id for identity in made), *(switch.pci_bus_id for switch in switches(root)))
        leading = () if faults else bridges(root, roots, on_bus)  # a wrong bridge may be below itself
        topology = PCIeTopology(roots, cores or DEFAULT_CORES_PER_NUMA, leading)
        shape = NodeShape(gpus, topology, network_of(root, gpus))
        return _Frame(
            root=root,
            state=State(
                generation=0,
                node=node,
                software=software,
                node_shape=shape,
                devices=(),
                switches=switches(root),
                fabric=fabric,
                imex=imex,
                mig=mig,
                config_raw=self.document.raw,
                topology_raw=self.topology.raw,
                mig_profiles_raw=self.mig_profiles,
            ),
            bases=bases,
            made=made,
            links=links(root, [identity.pci_bus_id for identity in made]),
            driver=_driver(root, software),
            faults=tuple(faults),
        )

    def _device(self, frame: _Frame, index: int, overrides: Overrides, faults: list[Fault]) -> _Device | None:
        own = overrides.devices.get(index)
        known = self._devices.get(index)
        if known is not None and known.all is overrides.all and known.own is own:
            return known
        keys = self.effective(index, overrides)
        before = len(faults)
        check_complete(frame.root, index, keys, faults)
        check_values(frame.root, index, keys, faults)
        if frame.faults or len(faults) > before:
            return None
        identity = frame.made[index]
        runtime = device_runtime(
            keys,
            root=frame.root,
            index=index,
            identity=identity,
            links=frame.links[index],
            driver=frame.driver,
            known=self._known,
        )
        device = self._devices[index] = _Device(overrides.all, own, _spec(index, keys, identity), runtime)
        return device


def _bases(root: Node, count: int, options: Options, faults: list[Fault]) -> tuple[Node, ...]:
    """The keys of each device as document and options have them."""
    try:
        given = assignments(options.overrides)
    except ProfileError as error:
        faults.extend(error.faults)
        given = NO_KEYS
    return tuple(merge(base, given) for base in in_mode(root, base_devices(root, count)))


def _patched(root: Node, sections: Node, faults: list[Fault]) -> Node:
    """The document with the node's own overrides; count and driver are no part of it: they act as options do."""
    entries = dict(sections.value) if isinstance(sections.value, dict) else {}
    system = entries.get("system")
    if system is not None and isinstance(system.value, dict):
        kept = {key: node for key, node in system.value.items() if key not in ("driver_version", "num_devices")}
        entries["system"] = system._replace(value=kept)
    if not entries:
        return root
    root = merge(root, sections._replace(value=entries))
    check_consistency(root, faults)
    check_documented(root, faults)
    return root


def _driver(root: Node, software: SoftwareVersions) -> tuple[str, bool]:
    """The driver's version, and whether it replaces the profile's own."""
    return software.driver_version, software.driver_version != text(find(root, "system.driver_version"))


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
        **_on_the_bus(device),
    )


def _on_the_bus(device: Node) -> dict[str, Any]:
    """What of a device's keys shows on the PCI bus."""
    base_class, sub_class = number(find(device, "pci.base_class")), number(find(device, "pci.sub_class"))

    def link(key: str) -> int:
        return number(find(device, f"pcie.{key}")) or 0

    return {
        "pci_base_class": 0x03 if base_class is None else base_class,
        "pci_sub_class": 0x02 if sub_class is None else sub_class,
        "bar1_total_bytes": number(find(device, "bar1_memory.total_bytes")) or 0,
        "pcie_link": PCIeLinkSpec(
            link("device_max_link_gen") or link("max_link_gen"),
            link("max_link_width"),
            link("current_link_gen"),
            link("current_link_width"),
        ),
        "off_bus": failure_mode(device) == "fallen_off_bus",
    }
