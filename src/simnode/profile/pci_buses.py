"""Which bus numbers of a `pcie_topology` lie where: each in one place, as a machine's firmware gives them out.

A bus is a root complex's own, or below exactly one bridge, and the buses below a bridge are a range that is no other's.
What contradicts that is refused, for lspci, hwloc and NVML would each make something else of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from simnode.profile.document import Node, find, items
from simnode.profile.faults import Fault, quoted
from simnode.profile.identity import bus_id, bus_of, root_id
from simnode.profile.pci import Listed, domain_of, last_buses, listed, root_of
from simnode.profile.schema import BUS_ID, ROOT_ID
from simnode.profile.shapes import text

Bus = tuple[str, int]
"""A domain, and the number of a bus in it."""


def check_buses(root: Node, faults: list[Fault]) -> None:
    """Append a fault for every bridge that nothing leads to, and all that is on a bus where it cannot be."""
    declared = list(listed(root))
    below: dict[Bus, Listed] = {}
    found = list(_wrong_bridges(declared))
    if not found:
        last = last_buses(declared)
        found = list(_overlapping(declared, below, last)) or list(_misplaced(root, declared, below, last))
    faults += found


def _wrong_bridges(declared: Iterable[Listed]) -> Iterator[Fault]:
    """What is wrong with bridges taken one by one."""
    owners: dict[Bus, Listed] = {}
    for each in declared:
        place = domain_of(each.address), each.secondary
        if place in owners:
            yield _fault(each, "bus", f"0x{each.secondary:02x} is the bus below {owners[place].address} already")
        owners.setdefault(place, each)
    for each in declared:
        bus = bus_of(each.address)
        if each.secondary <= bus:
            yield _fault(each, "bus", f"must be a bus after the bridge's own, 0x{bus:02x}, not 0x{each.secondary:02x}")
        elif root_of(each) != each.root:
            above = owners.get((domain_of(each.address), bus))
            if above is None or above.root != each.root:
                yield _fault(each, "bdf", f"{quoted(each.address)} is on a bus that no bridge of {each.root} has")


def _overlapping(declared: Iterable[Listed], below: dict[Bus, Listed], last: Mapping[Bus, int]) -> Iterator[Fault]:
    """Bridges with buses among another's; fills `below` with the nearest bridge above each bus."""
    for each in sorted(declared, key=lambda each: each.secondary):
        domain = domain_of(each.address)
        above = below.get((domain, bus_of(each.address)))
        buses = [(domain, bus) for bus in range(each.secondary, last[domain, each.secondary] + 1)]
        taken = next((bus for bus in buses if below.get(bus, above) is not above), None)
        if taken is not None:
            yield _fault(each, "bus", f"{_among(taken[1], below[taken], last)}, and the bridge is on none of them")
        below.update((bus, each) for bus in buses)


def _misplaced(
    root: Node, declared: Iterable[Listed], below: Mapping[Bus, Listed], last: Mapping[Bus, int]
) -> Iterator[Fault]:
    """What is wrong with roots, GPUs and switches, when the bridges are right."""
    yield from _misplaced_roots(root, below, last)
    yield from _misplaced_functions(root, below, last)
    yield from _misplaced_devices(root, declared, below)


def _misplaced_roots(root: Node, below: Mapping[Bus, Listed], last: Mapping[Bus, int]) -> Iterator[Fault]:
    for key, node, name in _roots(root):
        own = _own_bus(name)
        if own in below:
            yield Fault(node.file, f"{key}.id", node.line, f"{_among(own[1], below[own], last)}: it is no root's own")


def _misplaced_functions(root: Node, below: Mapping[Bus, Listed], last: Mapping[Bus, int]) -> Iterator[Fault]:
    """GPUs and switches on a bus that nothing leads to."""
    seen: set[str] = set()
    for key, node, address in _functions(root):
        bridge = below.get((domain_of(address), bus_of(address)))
        if address not in seen and bridge is not None and bridge.secondary != bus_of(address):
            message = f"{_among(bus_of(address), bridge, last)}, and no bridge leads to it"
            yield Fault(node.file, key, node.line, message)
        seen.add(address)


def _misplaced_devices(root: Node, declared: Iterable[Listed], below: Mapping[Bus, Listed]) -> Iterator[Fault]:
    """What a root complex lists and does not have."""
    bridges = {each.address for each in declared}
    owner = {_own_bus(name): name for _, _, name in _roots(root)}
    owner.update((bus, bridge.root) for bus, bridge in below.items())
    for key, node, name, address in _held(root):
        bus = domain_of(address), bus_of(address)
        if address in bridges:
            yield Fault(node.file, key, node.line, f"{quoted(address)} is a bridge")
        elif bus[0] != _own_bus(name)[0]:
            yield Fault(node.file, key, node.line, f"{quoted(address)} is in another domain than {name}")
        elif owner.setdefault(bus, name) != name:
            message = f"{quoted(address)} is on a bus of {owner[bus]}, not of {name}"
            yield Fault(node.file, key, node.line, message)


def _among(bus: int, bridge: Listed, last: Mapping[Bus, int]) -> str:
    end = last[domain_of(bridge.address), bridge.secondary]
    return f"0x{bus:02x} is among the buses below {bridge.address}, 0x{bridge.secondary:02x} to 0x{end:02x}"


def _own_bus(name: str) -> Bus:
    """The bus that a root complex is named after."""
    domain, bus = name.removeprefix("pci").split(":")
    return domain, int(bus, 16)


def _roots(root: Node) -> Iterator[tuple[str, Node, str]]:
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        node = find(complex_, "id")
        if node is not None and ROOT_ID.fullmatch(text(node)):
            yield f"pcie_topology.root_complexes[{at}]", node, root_id(text(node))


def _held(root: Node) -> Iterator[tuple[str, Node, str, str]]:
    """What root complexes list: key, node, the root complex, the address."""
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        name = text(find(complex_, "id"))
        for place, node in enumerate(items(find(complex_, "devices"))):
            if ROOT_ID.fullmatch(name) and BUS_ID.fullmatch(text(node)):
                key = f"pcie_topology.root_complexes[{at}].devices[{place}]"
                yield key, node, root_id(name), bus_id(text(node))


def _functions(root: Node) -> Iterator[tuple[str, Node, str]]:
    places = [
        (f"{section}[{at}].{key}", find(entry, key))
        for section, key in (("devices", "pci.bus_id"), ("nvlink.switches", "bdf"))
        for at, entry in enumerate(items(find(root, section)))
    ]
    for key, node in (*places, *((key, node) for key, node, _, _ in _held(root))):
        if node is not None and BUS_ID.fullmatch(text(node)):
            yield key, node, bus_id(text(node))


def _fault(bridge: Listed, key: str, message: str) -> Fault:
    return Fault(bridge.node.file, f"{bridge.key}.{key}", bridge.node.line, message)
