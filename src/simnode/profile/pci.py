"""The PCI bridges of a node: root ports and switch ports as `pcie_topology` lists them, and what it leaves out.

A root complex lists its bridges, each with the bus below it; where each belongs follows from the bus numbers. A GPU on
a bus that no listed bridge has gets a root port of its own, as no kernel shows a device on a bus that nothing leads to;
one that no root complex holds is on the bus of a root of its own. Bridges that lead to no device are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from simnode.profile.document import Node, find, items
from simnode.profile.identity import bus_id, bus_of, root_id
from simnode.profile.pci_ports import PORTS
from simnode.profile.schema import BUS_ID, ROOT_ID
from simnode.profile.shapes import number, text, word
from simnode.state import BridgeSpec, RootComplex

_LAST_PLACE = 0x1F * 8 + 7
_PLAIN = "intel-root-port-352a"


class Listed(Struct, frozen=True):
    """A bridge as a document lists it."""

    node: Node
    key: str
    root: str
    address: str
    port: str
    secondary: int


def bridges(root: Node, roots: Iterable[RootComplex], addresses: Iterable[str]) -> tuple[BridgeSpec, ...]:
    """The bridges that lead to the functions at `addresses`, each after the one above it. The document is checked."""
    present = sorted(set(addresses))
    declared = list(listed(root))
    below = {(domain_of(each.address), each.secondary): each for each in declared}
    taken = {*present, *(each.address for each in declared)}
    plain = next((each.port for each in declared if root_of(each) == each.root), _PLAIN)
    for complex_ in roots:
        for address in complex_.device_bdfs:
            place = domain_of(address), bus_of(address)
            if address in present and place not in below and _leads_to(complex_.id, place):
                free = _free_place(complex_.id, taken)
                if free:
                    taken.add(free)
                    below[place] = Listed(root, "", complex_.id, free, plain, place[1])
    return tuple(_in_use(below, present))


def reserved(root: Node) -> set[str]:
    """An address on each bus that is a root complex's own or below a listed bridge: nobody else is given one there."""
    declared = list(listed(root))
    last = last_buses(declared)
    found = {each.address for each in declared}
    for complex_ in items(find(root, "pcie_topology.root_complexes")):
        found.add(f"{root_id(text(find(complex_, 'id'))).removeprefix('pci')}:00.0")
    for each in declared:
        domain = domain_of(each.address)
        found.update(f"{domain}:{bus:02x}:00.0" for bus in range(each.secondary, last[domain, each.secondary] + 1))
    return found


def listed(root: Node) -> Iterator[Listed]:
    """Every bridge that is right for itself."""
    for at, complex_ in enumerate(items(find(root, "pcie_topology.root_complexes"))):
        name = text(find(complex_, "id"))
        for place, node in enumerate(items(find(complex_, "bridges"))):
            address, port = text(find(node, "bdf")), word(find(node, "port"), tuple(PORTS))
            secondary = number(find(node, "bus"))
            if BUS_ID.fullmatch(address) and ROOT_ID.fullmatch(name) and port and secondary is not None:
                key = f"pcie_topology.root_complexes[{at}].bridges[{place}]"
                yield Listed(node, key, root_id(name), bus_id(address), port, secondary)


def _in_use(below: Mapping[tuple[str, int], Listed], present: Iterable[str]) -> Iterator[BridgeSpec]:
    """Those above what is present, with the last bus that something is on below each."""
    last: dict[str, int] = {}
    chains = [_chain(address, below) for address in present]
    for address, chain in zip(present, chains, strict=True):
        for each in chain:
            last[each.address] = max(last.get(each.address, each.secondary), bus_of(address))
    made: dict[str, BridgeSpec] = {}
    for chain in chains:
        port = ""
        for each in chain:
            port = {"": "root", "root": "upstream", "upstream": "downstream", "downstream": "upstream"}[port]
            kind = PORTS[each.port]
            made.setdefault(
                each.address,
                BridgeSpec(
                    pci_bus_id=each.address,
                    root=each.root,
                    port=port,
                    pci_device_id=kind.device_id,
                    pci_subsystem_id=kind.subsystem_id,
                    revision=kind.revision,
                    link_gen=kind.link_gen,
                    link_width=kind.link_width,
                    secondary=each.secondary,
                    subordinate=last[each.address],
                ),
            )
    yield from made.values()


def _chain(address: str, below: Mapping[tuple[str, int], Listed]) -> list[Listed]:
    """The bridges above an address, the one at the root first."""
    chain: list[Listed] = []
    above = below.get((domain_of(address), bus_of(address)))
    while above is not None:
        chain.append(above)
        above = below.get((domain_of(above.address), bus_of(above.address)))
    return chain[::-1]


def root_of(bridge: Listed) -> str:
    """The id of the root complex on whose own bus a bridge would be."""
    return f"pci{domain_of(bridge.address)}:{bus_of(bridge.address):02x}"


def last_buses(declared: Iterable[Listed]) -> dict[tuple[str, int], int]:
    """By domain and bus below a bridge: the last bus below it as the document has them, each after what leads to it."""
    last: dict[tuple[str, int], int] = {}
    for each in sorted(declared, key=lambda each: each.secondary, reverse=True):
        domain, bus = domain_of(each.address), bus_of(each.address)
        end = max(last.get((domain, each.secondary), 0), each.secondary)
        last[domain, each.secondary] = end
        last[domain, bus] = max(last.get((domain, bus), bus), end)
    return last


def _leads_to(root: str, place: tuple[str, int]) -> bool:
    """Whether a port of this root can lead to a bus: of the same domain, and not the root's own."""
    domain, bus = root.removeprefix("pci").split(":")
    return place[0] == domain and place[1] != int(bus, 16)


def _free_place(root: str, taken: set[str]) -> str:
    """The next function on a root's own bus that nobody has, device 1 first; "" if all are taken."""
    domain, bus = root.removeprefix("pci").split(":")
    places = [*range(8, _LAST_PLACE + 1, 8), *range(9, _LAST_PLACE + 1)]
    candidates = (f"{domain}:{bus}:{place >> 3:02x}.{place & 7}" for place in places)
    return next((candidate for candidate in candidates if candidate not in taken), "")


def domain_of(address: str) -> str:
    """The domain of an address in State's form."""
    return address.partition(":")[0]
