"""Where each GPU lies: the levels towards its peers, its CPUs and its memory, from the node's root complexes.

The levels are those of real machines (board facts, topology matrices): GPUs below one root port share one switch or
several, those below one root complex its host bridge, those of one NUMA node the node, all others the system.
"""

from __future__ import annotations

import struct
from itertools import takewhile

from msgspec import Struct

from simnode.nvml.layout import CPU_WORDS, MAX_DEVICES
from simnode.nvml.values import ImageError
from simnode.state import DeviceRuntime, RootComplex, State

# nvmlGpuTopologyLevel_t
INTERNAL, SINGLE_SWITCH, SWITCHES, HOST_BRIDGE, NUMA_NODE, SYSTEM = 0, 10, 20, 30, 40, 50
# nvmlGpuP2PStatus_t
P2P_OK, P2P_NOT_SUPPORTED = 0, 5

CPUS = CPU_WORDS * 64
_MEMORY_NODES = 256
NO_NUMA = -1
SWITCHED = -1


class Place(Struct, frozen=True):
    """The bytes of the device record's `cpu_affinity`, `memory_affinity`, `ancestor` and `p2p`."""

    cpu_affinity: bytes
    memory_affinity: bytes
    ancestor: bytes
    p2p: bytes


def places(state: State) -> tuple[Place, ...]:
    """The place of each device, in the order of `state.devices`. Raises ImageError for CPUs beyond the image's."""
    root_of = {bdf: root for root in state.pci_topology() for bdf in root.device_bdfs}
    roots = [root_of[device.pci_bus_id] for device in state.devices]
    per_numa = state.node_shape.topology.cores_per_numa
    masks = {root.id: _affinity(root, per_numa) for root in roots}
    bridges = _bridges(state)
    linked = [_linked(state, runtime) for runtime in state.runtime.devices]
    linked += [frozenset()] * (len(roots) - len(linked))
    return tuple(
        Place(
            *masks[root.id],
            bytes(
                INTERNAL if i == j else _level(root, other, bridges[i], bridges[j]) for j, other in enumerate(roots)
            ).ljust(MAX_DEVICES, b"\0"),
            bytes(
                P2P_OK
                if i == j or j in linked[i] or (SWITCHED in linked[i] and SWITCHED in linked[j])
                else P2P_NOT_SUPPORTED
                for j in range(len(roots))
            ).ljust(MAX_DEVICES, b"\0"),
        )
        for i, root in enumerate(roots)
    )


def cpus(listed: str) -> frozenset[int]:
    """The CPUs of a kernel CPU list such as "0-55,112-167". Raises ImageError."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in listed.split(","))):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise ImageError(
                f"pcie_topology.root_complexes.cpu_affinity: {listed!r} is no CPU list such as 0-55,112-167"
            )
        low, high = int(first), int(last or first)
        if not low <= high < CPUS:
            raise ImageError(f"pcie_topology.root_complexes.cpu_affinity: {part!r} is not between 0 and {CPUS - 1}")
        found.update(range(low, high + 1))
    return frozenset(found)


def _linked(state: State, runtime: DeviceRuntime) -> frozenset[int]:
    """The GPUs at the other end of active NVLinks; SWITCHED for a switch."""
    index_of = {device.pci_bus_id: device.index for device in state.devices}
    ends = set()
    for link in runtime.links:
        if link.active and link.remote_type == "switch":
            ends.add(SWITCHED)
        elif link.active and link.remote_type == "gpu":
            ends.add(link.remote_index if link.remote_index >= 0 else index_of.get(link.remote_pci_bus_id, SYSTEM))
    return frozenset(ends)


def _bridges(state: State) -> list[tuple[str, ...]]:
    """The bridges above each device, the one at the root first."""
    above = {(each.pci_bus_id[:-8], each.secondary): each.pci_bus_id for each in state.node_shape.topology.bridges}
    found = []
    for device in state.devices:
        chain = [device.pci_bus_id]
        while (address := above.get((chain[-1][:-8], int(chain[-1][-7:-5], 16)))) is not None:
            chain.append(address)
        found.append(tuple(reversed(chain[1:])))
    return found


def _level(root: RootComplex, other: RootComplex, mine: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    """By what two devices have in common; each switch on the way has a port above and one below."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
    if common:
        return SINGLE_SWITCH if max(len(mine), len(theirs)) - common <= 1 else SWITCHES
    if root.id == other.id:
        return HOST_BRIDGE
    return NUMA_NODE if root.numa_node == other.numa_node != NO_NUMA else SYSTEM


def _affinity(root: RootComplex, cores_per_numa: int) -> tuple[bytes, bytes]:
    """CPU mask and memory mask; without a CPU list, the node's share of equal ones; without a node, none."""
    if root.cpu_affinity:
        held = cpus(root.cpu_affinity)
    elif root.numa_node != NO_NUMA:
        held = frozenset(range(root.numa_node * cores_per_numa, (root.numa_node + 1) * cores_per_numa))
    else:
        held = frozenset()
    if not (NO_NUMA <= root.numa_node < _MEMORY_NODES and max(held, default=0) < CPUS):
        raise ImageError(f"pcie_topology.root_complexes.numa_node: {root.numa_node} has no place among {CPUS} CPUs")
    memory = 1 << root.numa_node if root.numa_node != NO_NUMA else 0
    return _mask(held, CPUS), memory.to_bytes(_MEMORY_NODES // 8, "little")


def _mask(bits: frozenset[int], width: int) -> bytes:
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return struct.pack(f"<{width // 64}Q", *(mask >> at & (1 << 64) - 1 for at in range(0, width, 64)))
