"""The NVLinks of each GPU: as the profile lists them, or spread over the switches it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simnode.nvml import layout
from simnode.profile.document import Node, find, items
from simnode.profile.identity import bus_id
from simnode.profile.schema import LINK_REMOTES, LINK_STATES
from simnode.profile.shapes import number, text, word
from simnode.state import LinkSpec, SwitchSpec

_ACTIVE = ("active", "up", "enabled")
_MISSING = LinkSpec(False, "", "")


def switches(root: Node) -> tuple[SwitchSpec, ...]:
    """The NVSwitches on this node's own PCI bus: those that the profile gives a PCI device id."""
    found = []
    for entry in items(find(root, "nvlink.switches")):
        device_id = number(find(entry, "device_id"))
        if device_id:
            address = bus_id(text(find(entry, "bdf")))
            found.append(SwitchSpec(address, device_id, number(find(entry, "subsystem_id")) or 0))
    return tuple(found)


def links(root: Node, buses: Sequence[str]) -> tuple[tuple[LinkSpec, ...], ...]:
    """The links of each GPU, in the order of `buses`, their bus ids.

    A GPU with an explicit list has just those. Any other has `links_per_gpu` links if there are switches: those that
    are declared, then the `remote_switches` of a rack or a baseboard, which are on no PCI bus of this node.
    """
    declared = [bus_id(text(find(entry, "bdf"))) for entry in items(find(root, "nvlink.switches"))]
    explicit = {number(find(entry, "index")): entry for entry in items(find(root, "nvlink.device_links"))}
    first = find(root, "nvlink.links")
    default_state = word(find(root, "nvlink.defaults.state"), LINK_STATES) or "active"
    per_gpu = min(number(find(root, "nvlink.links_per_gpu")) or 0, layout.MAX_LINKS)
    remote = number(find(root, "nvlink.remote_switches")) or 0
    switched = [*declared, *[""] * remote]
    active = default_state in _ACTIVE
    peers = _peers(buses, declared)
    made = []
    for index in range(len(buses)):
        entry = explicit.get(index)
        listed = items(find(entry, "links")) if entry is not None else items(first) if index == 0 else ()
        if listed:
            made.append(_listed(listed, peers, default_state))
            continue
        ends = switches_of(per_gpu, len(switched), index) if switched else ()
        made.append(tuple(LinkSpec(active, "switch", switched[end], end) for end in ends))
    return tuple(made)


def switches_of(links: int, count: int, gpu: int) -> tuple[int, ...]:
    """Which of `count` switches each of a GPU's links leads to: neighbouring pairs to one switch, the rest one by one.

    So an HGX H100 has 5, 5, 4 and 4 links to its four switches, an HGX A100 two to each of six (board facts, NVLink
    status). Each GPU begins at the switch after that of the one before, so that no switch has more links than others.
    """
    paired = links // (2 * count) * 2 * count
    return tuple(((at // 2 if at < paired else at - paired) + gpu) % count for at in range(links))


def _listed(entries: Sequence[Node], peers: Mapping[str, tuple[str, int]], default_state: str) -> tuple[LinkSpec, ...]:
    by_number = {number(find(entry, "link")) or 0: entry for entry in entries}
    return tuple(
        _link(by_number[at], peers, default_state) if at in by_number else _MISSING for at in range(max(by_number) + 1)
    )


def _link(entry: Node, peers: Mapping[str, tuple[str, int]], default_state: str) -> LinkSpec:
    """A peer is found by its kind and index, else by its bus id; a link to a CPU has no PCI peer."""
    active = (word(find(entry, "state"), LINK_STATES) or default_state) in _ACTIVE
    kind = (word(find(entry, "remote_device_type"), LINK_REMOTES) or "").replace("nvswitch", "switch")
    index = number(find(entry, "remote_index"))
    written = text(find(entry, "remote_pci_bus_id"))
    address = bus_id(written) if written else ""
    by_index = {peer: bus for bus, peer in peers.items()}
    if index is not None and (kind, index) in by_index:
        return LinkSpec(active, kind, by_index[kind, index], index)
    if address in peers:
        return LinkSpec(active, peers[address][0], address, peers[address][1])
    if kind == "gpu":  # a GPU that this node does not have: of another node if it has an address, else of none
        return LinkSpec(active, kind, address) if address else _MISSING
    return LinkSpec(active, "switch" if kind == "switch" else "", address)


def _peers(buses: Sequence[str], declared: Sequence[str]) -> dict[str, tuple[str, int]]:
    found = {bus: ("switch", at) for at, bus in enumerate(declared)}
    found.update({bus: ("gpu", at) for at, bus in enumerate(buses)})
    return found
