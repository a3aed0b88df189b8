"""The PCI functions of a State: who each is, and where it sits.

GPUs and NVSwitches are the State's, and the bridges above them its topology's. A function on a bus that no bridge leads
to is on a root complex of its own: a GPU that the State places nowhere has NUMA node -1 there, never another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from simnode.nvml.topology import cpus
from simnode.state import BridgeSpec, DeviceSpec, RootComplex, State, SwitchSpec, VGPUGuestSpec

NVIDIA = 0x10DE
BRIDGE_CLASS, SWITCH_CLASS = 0x060400, 0x068000
NO_NUMA = -1

GPU_IRQ = 254  # as /proc/driver/nvidia says of each
_SWITCH_IRQ, _FIRST_PORT_IRQ = 253, 24
_REVISION = 0xA1
_MIB = 1 << 20
_SWITCH_LINK = (4, 2)  # an HGX H100 baseboard's; what others have is not known
_OLD_BAR1 = 256 * _MIB
_NEW_REGISTERS = {"hopper": 16 * _MIB, "blackwell": 64 * _MIB}


class Bar(Struct, frozen=True):
    """A base address register: its index, its size in bytes, and whether it is prefetchable and has 64 bits."""

    index: int
    size: int
    prefetchable: bool = True
    wide: bool = True


class Place(Struct, frozen=True):
    """Where a function sits: its root complex, the bridge above it ("" for none), NUMA node and the CPUs near it.

    `all_cpus` is how many CPUs the node has, as far as its root complexes tell.
    """

    root: str
    above: str
    numa: int
    cpus: frozenset[int]
    all_cpus: int


class Link(Struct, frozen=True):
    """A PCI Express link: generation and lanes at most, and now."""

    max_gen: int
    max_width: int
    gen: int
    width: int


class Function(Struct, frozen=True):
    """One PCI function. `kind`: a GPU's architecture, "switch", or the port that a bridge is (BridgeSpec.port).

    Ids are `device << 16 | vendor`; `buses` are a bridge's secondary and subordinate; `serial` tells GPUs apart.
    """

    address: str
    kind: str
    device_id: int
    subsystem_id: int
    class_code: int
    revision: int
    driver: str
    irq: int
    place: Place
    link: Link
    bars: tuple[Bar, ...] = ()
    buses: tuple[int, int] | None = None
    serial: str = ""
    guest: VGPUGuestSpec | None = None
    off_bus: bool = False

    @property
    def bus(self) -> int:
        """The number of the bus that it is on."""
        return int(self.address.split(":")[1], 16)

    @property
    def slot(self) -> int:
        """Device and function as one number, as PCI has them."""
        device, number = self.address.split(":")[2].split(".")
        return int(device, 16) << 3 | int(number)


def functions(state: State) -> dict[str, Function]:
    """Every function by its address, bridges before what is below them."""
    places = _Places(state)
    bridges = state.node_shape.topology.bridges
    ends = [_gpu(device, places) for device in state.devices] + [_switch(switch, places) for switch in state.switches]
    found = {bridge.pci_bus_id: _bridge(bridge, at, places) for at, bridge in enumerate(bridges)}
    found.update((end.address, end) for end in ends)
    return _linked(found)


class _Places:
    """Where what has an address sits."""

    def __init__(self, state: State) -> None:
        topology = state.node_shape.topology
        self._per_numa = topology.cores_per_numa
        self._roots = {root.id: root for root in topology.root_complexes}
        self._roots.update((root.id, root) for root in reversed(state.pci_topology()) if root.id not in self._roots)
        self._root_of = {bdf: root for root in state.pci_topology() for bdf in root.device_bdfs}
        self._above = {(_domain(each.pci_bus_id), each.secondary): each for each in topology.bridges}
        near = [self._near(root) for root in self._roots.values()]
        self._everywhere = frozenset().union(*near) or frozenset(range(self._per_numa))

    def of(self, address: str) -> Place:
        """The place of a function."""
        domain, bus = address.split(":")[:2]
        bridge = self._above.get((domain, int(bus, 16)))
        own = f"pci{domain}:{bus}"
        root = self._root_of.get(address) or self._roots.get(bridge.root if bridge else own)
        numa = root.numa_node if root else NO_NUMA
        near = (self._near(root) if root else frozenset()) or self._everywhere
        above = bridge.pci_bus_id if bridge else ""
        return Place(bridge.root if bridge else own, above, numa, near, max(self._everywhere) + 1)

    def _near(self, root: RootComplex) -> frozenset[int]:
        """As NVML has it: what is listed, else the node's share of equal ones."""
        if root.cpu_affinity:
            return cpus(root.cpu_affinity)
        if root.numa_node == NO_NUMA:
            return frozenset()
        return frozenset(range(root.numa_node * self._per_numa, (root.numa_node + 1) * self._per_numa))


def _gpu(device: DeviceSpec, places: _Places) -> Function:
    link = device.pcie_link
    max_gen, max_width = link.max_gen or link.current_gen, link.max_width or link.current_width
    return Function(
        address=device.pci_bus_id,
        kind=device.architecture,
        device_id=device.pci_device_id,
        subsystem_id=device.pci_subsystem_id,
        class_code=device.pci_base_class << 16 | device.pci_sub_class << 8,
        revision=_REVISION,
        driver="nvidia",
        irq=GPU_IRQ,
        place=places.of(device.pci_bus_id),
        link=Link(max_gen, max_width, link.current_gen or max_gen, link.current_width or max_width),
        bars=_bars(device),
        serial=device.uuid,
        guest=device.vgpu_guest,
        off_bus=device.off_bus,
    )


def _bars(device: DeviceSpec) -> tuple[Bar, ...]:
    """Registers, memory, and a small third, as each family has them (board facts, BARs); sizes are whole MiB."""
    memory = 1 << max(device.bar1_total_bytes - 1, _MIB - 1).bit_length() if device.bar1_total_bytes else _OLD_BAR1
    if device.architecture in _NEW_REGISTERS:
        return Bar(0, _NEW_REGISTERS[device.architecture]), Bar(2, memory), Bar(4, 32 * _MIB)
    return Bar(0, 16 * _MIB, prefetchable=False, wide=False), Bar(1, memory), Bar(3, 32 * _MIB)


def _switch(switch: SwitchSpec, places: _Places) -> Function:
    return Function(
        address=switch.pci_bus_id,
        kind="switch",
        device_id=switch.pci_device_id,
        subsystem_id=switch.pci_subsystem_id,
        class_code=SWITCH_CLASS,
        revision=_REVISION,
        driver="nvidia-nvswitch",
        irq=_SWITCH_IRQ,
        place=places.of(switch.pci_bus_id),
        link=Link(*_SWITCH_LINK, *_SWITCH_LINK),
        bars=(Bar(0, 32 * _MIB, prefetchable=False),),
    )


def _bridge(bridge: BridgeSpec, at: int, places: _Places) -> Function:
    return Function(
        address=bridge.pci_bus_id,
        kind=bridge.port,
        device_id=bridge.pci_device_id,
        subsystem_id=bridge.pci_subsystem_id,
        class_code=BRIDGE_CLASS,
        revision=bridge.revision,
        driver="pcieport",
        irq=_FIRST_PORT_IRQ + at,
        place=places.of(bridge.pci_bus_id),
        link=Link(bridge.link_gen, bridge.link_width, 0, 0),
        buses=(bridge.secondary, bridge.subordinate),
    )


def _linked(found: Mapping[str, Function]) -> dict[str, Function]:
    """The same with the links of bridges as they are now: both ends of a link agree."""
    below = children(found.values())

    def now(function: Function) -> Function:
        link, place = function.link, function.place
        if function.buses is None:
            return function
        if function.kind == "upstream" and place.above:
            other = found[place.above].link
            gen, width = min(link.max_gen, other.max_gen), min(link.max_width, other.max_width)
        else:
            other = found[below[function.address][0]].link
            gen, width = other.gen or min(link.max_gen, other.max_gen), other.width or other.max_width
        return replace(function, link=Link(max(link.max_gen, gen), max(link.max_width, width), gen, width))

    return {address: now(function) for address, function in found.items()}


def children(found: Iterable[Function]) -> dict[str, list[str]]:
    """The addresses below each bridge, and under "" those on a root's own bus, in order."""
    below: dict[str, list[str]] = {}
    for function in found:
        below.setdefault(function.place.above, []).append(function.address)
    return {above: sorted(addresses) for above, addresses in below.items()}


def path_of(function: Function, found: Mapping[str, Function]) -> str:
    """Where the function's directory lies below /sys: `devices/<root>/<bridges>/<address>`."""
    return "/".join(("devices", function.place.root, *reversed(list(_upwards(function, found)))))


def _upwards(function: Function, found: Mapping[str, Function]) -> Iterator[str]:
    yield function.address
    while function.place.above:
        function = found[function.place.above]
        yield function.address


def _domain(address: str) -> str:
    return address.partition(":")[0]
