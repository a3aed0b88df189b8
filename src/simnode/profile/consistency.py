"""What must hold between the keys of a document: no two GPUs that are the same one, and nothing that points nowhere.

Runs beside the schema's check on a document that may be wrong in other places, and looks only at values that are right
for themselves, so that one report holds all faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simnode.nvml import layout
from simnode.profile.document import Node, find, items
from simnode.profile.faults import Fault, quoted
from simnode.profile.identity import bus_id, root_id
from simnode.profile.pci_buses import check_buses
from simnode.profile.schema import BUS_ID, DRIVER_MAJORS, ROOT_ID, UUID
from simnode.profile.shapes import number, text

CPUS = layout.CPU_WORDS * 64
DEFAULT_CORES_PER_NUMA = 64
_MOST_SWITCHES = 32

_Places = Iterator[tuple[str, Node]]


def check_consistency(root: Node, faults: list[Fault]) -> None:
    """Append a fault for every place that contradicts another."""
    devices = [(f"devices[{at}]", entry) for at, entry in enumerate(items(find(root, "devices")))]
    _once(_values(devices, "index"), _integer, "index", faults)
    _once(_values(devices, "uuid"), _uuid, "UUID", faults)
    _once(_values(devices, "minor_number"), _integer, "minor number", faults)
    _once(_values(devices, "pdi"), _integer, "pdi", faults)
    _once(_values(devices, "platform.fabric_guid"), _integer, "fabric GUID", faults)
    _once(_functions(root, devices), _bus, "bus id", faults)
    _once(_root_devices(root), _bus, "bus id in pcie_topology", faults)
    _once(_root_ids(root), _root, "root complex", faults)
    _once(_indices(root, "nvlink.device_links"), _integer, "index", faults)
    _once(_partitioned(root), _index_or_all, "index", faults)
    _known_devices(root, devices, faults)
    _software(root, faults)
    _switches(root, faults)
    _majors(root, faults)
    check_buses(root, faults)
    _cpus(root, faults)


def _software(root: Node, faults: list[Fault]) -> None:
    """Software without a checksum is none that could be trusted, and a checksum alone is none that could be found."""
    keys = [f"imex.software.{key}" for key in ("url", "sha256")]
    missing = [key for key in keys if not text(find(root, key))]
    section = find(root, "imex.software")
    if len(missing) == 1 and section is not None:
        faults.append(Fault(section.file, missing[0], section.line, "is missing"))


def _switches(root: Node, faults: list[Fault]) -> None:
    """The registers of every one lie below 4 GiB, where there is no room for any number."""
    listed = enumerate(items(find(root, "nvlink.switches")))
    identified = [(at, node) for at, entry in listed if number(node := find(entry, "device_id"))]
    for at, node in identified[_MOST_SWITCHES : _MOST_SWITCHES + 1]:
        message = f"is one too many; a node has {_MOST_SWITCHES} switches with a device_id at the most"
        if node is not None:
            faults.append(Fault(node.file, f"nvlink.switches[{at}].device_id", node.line, message))


def _majors(root: Node, faults: list[Fault]) -> None:
    """The driver has one major for capabilities, whoever they belong to, and none for two things."""
    for key in ("mig.caps_major", "imex.caps_major", "imex.imex_major"):
        node = find(root, key)
        taken = DRIVER_MAJORS.get(number(node) or 0)
        if node is not None and taken:
            faults.append(Fault(node.file, key, node.line, f"must not be {number(node)}, the major of {taken}"))
    own, other = find(root, "mig.caps_major"), find(root, "imex.caps_major")
    if own is not None and number(own) and number(other) and number(own) != number(other):
        message = f"{number(own)} is not imex.caps_major, {number(other)}; both are the driver's one major"
        faults.append(Fault(own.file, "mig.caps_major", own.line, message))


def _once(places: _Places, identify: Callable[[Node], object], what: str, faults: list[Fault]) -> None:
    seen: dict[object, str] = {}
    for key, node in places:
        value = identify(node)
        if value is None:
            continue
        if value in seen:
            message = f"{what} {text(node) or value} is already that of {_owner(seen[value])}"
            faults.append(Fault(node.file, key, node.line, message))
        seen.setdefault(value, key)


def _owner(key: str) -> str:
    """The entry that a key belongs to: devices[3].pci.bus_id is that of devices[3]."""
    return key[: key.rindex("]") + 1]


def _values(devices: list[tuple[str, Node]], key: str) -> _Places:
    for path, entry in devices:
        node = find(entry, key)
        if node is not None:
            yield f"{path}.{key}", node


def _functions(root: Node, devices: list[tuple[str, Node]]) -> _Places:
    yield from _values(devices, "pci.bus_id")
    for at, switch in enumerate(items(find(root, "nvlink.switches"))):
        node = find(switch, "bdf")
        if node is not None:
            yield f"nvlink.switches[{at}].bdf", node
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        for place, bridge in enumerate(items(find(complex_, "bridges"))):
            node = find(bridge, "bdf")
            if node is not None:
                yield f"pcie_topology.root_complexes[{at}].bridges[{place}].bdf", node


def _root_devices(root: Node) -> _Places:
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        for place, node in enumerate(items(find(complex_, "devices"))):
            yield f"pcie_topology.root_complexes[{at}].devices[{place}]", node


def _root_ids(root: Node) -> _Places:
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        node = find(complex_, "id")
        if node is not None:
            yield f"pcie_topology.root_complexes[{at}].id", node


def _indices(root: Node, key: str) -> _Places:
    for at, entry in enumerate(items(find(root, key))):
        node = find(entry, "index")
        if node is not None:
            yield f"{key}[{at}].index", node


def _partitioned(root: Node) -> _Places:
    """What entries of `mig.gpus` are about; an entry without an index is about all."""
    for at, entry in enumerate(items(find(root, "mig.gpus"))):
        node = find(entry, "index")
        yield f"mig.gpus[{at}].index", node if node is not None else Node("all", entry.file, entry.line)


def _known_devices(root: Node, devices: list[tuple[str, Node]], faults: list[Fault]) -> None:
    """Where every device names its bus id, a root complex may hold only those."""
    known = {_bus(node) for _, node in _values(devices, "pci.bus_id")}
    written = find(root, "system.num_devices")
    count = number(written)
    if written is not None and count is None:
        return  # nobody knows how many there are
    if len(known) < max(len(devices), count or 0) or not devices:
        return
    for key, node in _root_devices(root):
        if _bus(node) is not None and _bus(node) not in known:
            faults.append(Fault(node.file, key, node.line, f"{quoted(str(node.value))} is the bus id of no device"))


def _cpus(root: Node, faults: list[Fault]) -> None:
    """The image holds so many CPUs; what a root complex has must lie among them."""
    cores = number(find(root, "pcie_topology.cores_per_numa")) or DEFAULT_CORES_PER_NUMA
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        path = f"pcie_topology.root_complexes[{at}]"
        listed, numa = find(complex_, "cpu_affinity"), find(complex_, "numa_node")
        if listed is not None:
            if isinstance(listed.value, str) and not _is_cpu_list(listed.value):
                message = f"must list CPUs from 0 to {CPUS - 1}, the lower first, not {quoted(listed.value)}"
                faults.append(Fault(listed.file, f"{path}.cpu_affinity", listed.line, message))
        elif numa is not None and isinstance(numa.value, int) and (numa.value + 1) * cores > CPUS:
            message = f"{numa.value} lies beyond CPU {CPUS - 1} with {cores} cores a node; give cpu_affinity"
            faults.append(Fault(numa.file, f"{path}.numa_node", numa.line, message))


def _is_cpu_list(listed: str) -> bool:
    for part in listed.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and len(part) < 16):
            return True  # not a list at all: the schema says so
        if not int(first) <= int(last or first) < CPUS:
            return False
    return True


def _integer(node: Node) -> object:
    return node.value if isinstance(node.value, int) and not isinstance(node.value, bool) else None


def _index_or_all(node: Node) -> object:
    index = number(node)
    return text(node) or "all" if index is None else index


def _root(node: Node) -> object:
    return root_id(node.value) if isinstance(node.value, str) and ROOT_ID.fullmatch(node.value) else None


def _uuid(node: Node) -> object:
    return node.value.lower() if isinstance(node.value, str) and UUID.fullmatch(node.value) else None


def _bus(node: Node) -> object:
    return bus_id(node.value) if isinstance(node.value, str) and BUS_ID.fullmatch(node.value) else None
