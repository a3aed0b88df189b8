"""The topology document: which node belongs to which NVLink domain and clique.

`{version: 1, domains: [{name, uuid, cliques: [{id, nodes: […]}]}]}`, one for a whole cluster. It is carried verbatim;
what it says of this node replaces cluster and clique of the profile, where the profile has a fabric at all.
"""

from __future__ import annotations

from msgspec import Struct, field

from simnode.profile.document import Document, Node, find, items, parse
from simnode.profile.faults import Fault, ProfileError, in_order, quoted, without_unknown
from simnode.profile.identity import uuid_of
from simnode.profile.schema import TOPOLOGY
from simnode.profile.shapes import check, number, text


class Place(Struct, frozen=True):
    """Where a node belongs; `cluster_uuid` in its usual form."""

    cluster_uuid: str
    clique_id: int


class Topology(Struct, frozen=True):
    """A checked topology document: its bytes, and the place of every node that it names."""

    raw: bytes = b""
    places: dict[str, Place] = field(default_factory=dict)


def load_topology(raw: bytes, file: str, unknown: list[Fault] | None = None) -> Topology:
    """The topology in `raw`. Raises ProfileError.

    Unknown keys are faults too, unless `unknown` is there to take them.
    """
    faults: list[Fault] = []
    root = parse(raw, file, faults) if raw.strip() else Document(file, Node(None, file)).root
    places: dict[str, Place] = {}
    if root is not None and root.value is not None:
        check(root, TOPOLOGY, "", faults)
        for at, domain in enumerate(items(find(root, "domains"))):
            for clique_at, clique in enumerate(items(find(domain, "cliques"))):
                place = Place(uuid_of(text(find(domain, "uuid"))), number(find(clique, "id")) or 0)
                for node_at, node in enumerate(items(find(clique, "nodes"))):
                    if text(node) in places:
                        key = f"domains[{at}].cliques[{clique_at}].nodes[{node_at}]"
                        faults.append(Fault(file, key, node.line, f"{quoted(text(node))} has a clique already"))
                    places.setdefault(text(node), place)
    faults = without_unknown(faults, unknown)
    if faults:
        raise ProfileError(in_order(faults))
    return Topology(raw, places)


def placed(device: Node, place: Place) -> Node:
    """The device's keys in its place; a device without a fabric has none."""
    fabric = find(device, "fabric")
    if fabric is None or not isinstance(fabric.value, dict) or not isinstance(device.value, dict):
        return device
    entries = {
        **fabric.value,
        "cluster_uuid": Node(place.cluster_uuid, fabric.file, fabric.line, place.cluster_uuid),
        "clique_id": Node(place.clique_id, fabric.file, fabric.line, str(place.clique_id)),
    }
    if not text(find(fabric, "state")):
        entries["state"] = Node("completed", fabric.file, fabric.line, "completed")
    return device._replace(value={**device.value, "fabric": fabric._replace(value=entries)})
