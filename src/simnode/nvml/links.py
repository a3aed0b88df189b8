"""Which of its own links the far end of each NVLink is: `nvidia-smi nvlink -R` prints it, and cables are traced by it.

A switch has a port for each link that leads to it, counted over the GPUs in their order (board facts, NVLink status).
Two GPUs count the links between them alike, so the link that one names leads back to the link that names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simnode.state import DeviceSpec, LinkSpec

_ANY_GPU = -1


def far_links(devices: Sequence[DeviceSpec], links: Sequence[tuple[LinkSpec, ...]]) -> tuple[tuple[int, ...], ...]:
    """For each GPU's links (in the order of `devices`) the number of the link at the other end; 0 without an end.

    At a GPU of another node, whose links are not known, the links that lead there are counted from 0.
    """
    index_of = {device.pci_bus_id: index for index, device in enumerate(devices)}
    peers = [[_peer(link, index_of) for link in own] for own in links]
    seen: Counter[tuple[int, str, str, int]] = Counter()
    found = []
    for index, own in enumerate(links):
        numbers = []
        for link, peer in zip(own, peers[index], strict=True):
            from_gpu = _ANY_GPU if link.remote_type == "switch" else index
            end = (from_gpu, link.remote_type, link.remote_pci_bus_id, link.remote_index)
            rank = seen[end] if link.remote_type else 0
            seen[end] += 1
            far = peers[peer] if peer is not None and peer < len(peers) else []
            back = [number for number, there in enumerate(far) if there == index]
            numbers.append(back[rank] if rank < len(back) else rank)
        found.append(tuple(numbers))
    return tuple(found)


def _peer(link: LinkSpec, index_of: dict[str, int]) -> int | None:
    """The index of the GPU of this node at the other end; it says more than the bus id."""
    if link.remote_type != "gpu":
        return None
    return link.remote_index if link.remote_index >= 0 else index_of.get(link.remote_pci_bus_id)
