"""The desired state of a node: frozen values that every other room reads and none changes.

`State` has two halves. The *structure* (software, devices, switches, fabric …) says what exists; a change of it takes a
wave. The *runtime* (`Runtime`) says what the devices read at the moment; a change of it alone is a patch of the image.
Nothing here does I/O. The names are those of the reference node-agent API, in Python's case.
"""

from __future__ import annotations

from operator import attrgetter

from simnode.partitions import MIGState
from simnode.spec import Spec


class NodeMeta(Spec, frozen=True):
    """Who the node is, and where the host's root lies as the agent sees it."""

    node_name: str = ""
    hostname: str = ""
    host_root: str = "/"


class SoftwareVersions(Spec, frozen=True):
    """Versions as NVML reports them; `cuda_version` is "major.minor".

    `loaded_version`: of the kernel modules where they are of another driver than the libraries, else "".
    """

    driver_version: str
    nvml_version: str
    cuda_version: str
    loaded_version: str = ""

    @property
    def kernel_version(self) -> str:
        """The version that the kernel modules say they have."""
        return self.loaded_version or self.driver_version


class RootComplex(Spec, frozen=True):
    """A PCI host bridge with the GPUs below it; `numa_node` is -1 where the platform has none."""

    id: str
    numa_node: int
    device_bdfs: tuple[str, ...]
    cpu_affinity: str


class BridgeSpec(Spec, frozen=True):
    """A PCI-to-PCI bridge of a root complex (`root`, its id), which leads to the buses `secondary` to `subordinate`.

    `port` is "root", "upstream" or "downstream", as PCI Express has them; `link_gen` and `link_width` are the most that
    its link can do; ids are `device << 16 | vendor`.
    """

    pci_bus_id: str
    root: str
    port: str
    pci_device_id: int
    pci_subsystem_id: int
    revision: int
    link_gen: int
    link_width: int
    secondary: int
    subordinate: int


class PCIeTopology(Spec, frozen=True):
    """The PCIe and NUMA layout of the node. `bridges`: those that lead to a device, each after the one above it."""

    root_complexes: tuple[RootComplex, ...] = ()
    cores_per_numa: int = 64
    bridges: tuple[BridgeSpec, ...] = ()


class NetworkShape(Spec, frozen=True):
    """The InfiniBand HCAs of the node, every field resolved so that `==` detects a real change."""

    ib_enabled: bool = False
    hca_count: int = 0
    hca_type: str = ""
    fw_version: str = ""
    hw_rev: str = ""
    board_id: str = ""
    node_desc_template: str = ""
    link_layer: str = ""
    rate_gbps: int = 0
    port_state: str = ""
    phys_state: str = ""
    guid_prefix: str = ""


class NodeShape(Spec, frozen=True):
    """What the node is built of."""

    num_gpus: int
    topology: PCIeTopology = PCIeTopology()
    network: NetworkShape = NetworkShape()


class VGPUGuestSpec(Spec, frozen=True):
    """The host driver that a hypervisor writes into a vGPU's PCI config space."""

    host_driver_version: str
    host_driver_branch: str


class PCIeLinkSpec(Spec, frozen=True):
    """The link of a GPU: what the GPU can do, and what was agreed upon with the port above it; 0 is unknown."""

    max_gen: int = 0
    max_width: int = 0
    current_gen: int = 0
    current_width: int = 0


class DeviceSpec(Spec, frozen=True):
    """Identity and fixed hardware of one GPU.

    `pci_bus_id` is `DDDD:BB:DD.F` in lower case; `pci_device_id` and `pci_subsystem_id` are `device << 16 | vendor`;
    `architecture` is NVML's word in lower case ("hopper"). `off_bus`: it no longer answers on the PCI bus.
    """

    index: int
    uuid: str
    minor_number: int
    serial: str
    pci_bus_id: str
    name: str
    architecture: str
    compute_cap_major: int
    compute_cap_minor: int
    memory_total_bytes: int
    pci_device_id: int
    pci_subsystem_id: int
    vbios_version: str = ""
    vgpu_guest: VGPUGuestSpec | None = None
    pci_base_class: int = 0x03
    pci_sub_class: int = 0x02
    bar1_total_bytes: int = 0
    pcie_link: PCIeLinkSpec = PCIeLinkSpec()
    off_bus: bool = False


class SwitchSpec(Spec, frozen=True):
    """An NVSwitch on this node's own PCIe bus; rack-scale switches have no PCI identity and are not listed."""

    pci_bus_id: str
    pci_device_id: int
    pci_subsystem_id: int


class FabricState(Spec, frozen=True):
    """The NVLink fabric. `enabled`: the profile declares NVLink; an empty `manager_state_dir`: the manager is off."""

    enabled: bool = False
    manager_state_dir: str = ""
    cluster_uuid: str = ""
    clique_id: int = 0
    links_per_gpu: int = 0
    bandwidth_per_link_mbps: int = 0


class IMEXSoftware(Spec, frozen=True):
    """The archive of IMEX's daemon and tools, and the checksum by which it is known."""

    url: str
    sha256: str


class IMEXState(Spec, frozen=True):
    """The IMEX channel devices of the node, how many, the majors they get, and the software, if any."""

    enabled: bool = False
    imex_major: int = 235
    caps_major: int = 236
    channels: int = 2048
    software: IMEXSoftware | None = None


class Gauge(Spec, frozen=True, tag=True):
    """A value that follows the device's load curve: `base + span * load`, load in 0…1, in the cell's unit."""

    base: int
    span: int


class Counter(Spec, frozen=True, tag=True):
    """A value that only grows: `start` at first publication, then `idle_rate + span_rate * load` units a second."""

    start: int
    idle_rate: float
    span_rate: float


class Refusal(Spec, frozen=True, tag=True):
    """A value that NVML refuses, with this nvmlReturn_t code."""

    code: int


Value = int | str | Gauge | Counter | Refusal


class ClockTable(Spec, frozen=True):
    """One supported memory clock and the graphics clocks that go with it, MHz, fastest first."""

    memory_mhz: int
    graphics_mhz: tuple[int, ...]


class ProcessSpec(Spec, frozen=True):
    """A process on a GPU. `type` is "C", "G" or "C+G"; utilisations are percent."""

    pid: int
    type: str
    name: str
    used_memory_bytes: int
    sm_util: int = 0
    mem_util: int = 0
    enc_util: int = 0
    dec_util: int = 0


class LinkSpec(Spec, frozen=True):
    """One NVLink of a GPU. `remote_type` is "gpu", "switch" or ""; `remote_pci_bus_id` is `DDDD:BB:DD.F` or ""."""

    active: bool
    remote_type: str
    remote_pci_bus_id: str
    remote_index: int = -1


class LoadSpec(Spec, frozen=True):
    """How busy a device is over time; `minimum` and `maximum` are percent, `period_s` seconds."""

    pattern: str = "idle"
    minimum: int = 0
    maximum: int = 0
    period_s: float = 60.0
    seed: int = 0


class EventSpec(Spec, frozen=True):
    """An event that a device raises, once.

    `number` tells it from an equal one before; `kind` is one of nvml.h's nvmlEventType bits, `data` the XID code.
    """

    number: int
    kind: int
    data: int


class DeviceRuntime(Spec, frozen=True):
    """What one device reads now.

    `values` maps cell keys (the profile's dotted keys, sorted) to values; a key that is missing answers what its cell
    says for unset. `lost` is 0, or the nvmlReturn_t code that every getter of the device answers. `events` are those in
    force: each is raised when it appears here.
    """

    values: tuple[tuple[str, Value], ...] = ()
    load: LoadSpec = LoadSpec()
    supported_clocks: tuple[ClockTable, ...] = ()
    processes: tuple[ProcessSpec, ...] = ()
    links: tuple[LinkSpec, ...] = ()
    lost: int = 0
    events: tuple[EventSpec, ...] = ()


class Runtime(Spec, frozen=True):
    """The effective per-device values, in the order of `State.devices`."""

    devices: tuple[DeviceRuntime, ...] = ()


class State(Spec, frozen=True):
    """The compiled desired state of one node, an immutable value.

    `generation` rises with every accepted change and takes no part in `==`. The `*_raw` documents are carried verbatim
    for surfaces that stage them.
    """

    generation: int
    node: NodeMeta
    software: SoftwareVersions
    node_shape: NodeShape
    devices: tuple[DeviceSpec, ...]
    switches: tuple[SwitchSpec, ...] = ()
    fabric: FabricState = FabricState()
    imex: IMEXState = IMEXState()
    mig: MIGState = MIGState()
    config_raw: bytes = b""
    topology_raw: bytes = b""
    mig_profiles_raw: bytes = b""
    runtime: Runtime = Runtime()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return bool(_all_but_generation(self) == _all_but_generation(other))

    def __hash__(self) -> int:
        return hash((self.software, self.node_shape, self.devices))

    def has_pci_topology(self) -> bool:
        """True if the node has any GPU that a PCI bus would show."""
        return bool(self.devices)

    def pci_topology(self) -> tuple[RootComplex, ...]:
        """The declared root complexes less what no device is on; a GPU that none declares is on that of its bus.

        Where no declared one has that bus, its root is named after domain and bus, and has NUMA node -1 (host facts,
        PCI bus).
        """
        topology = self.node_shape.topology
        roots = {root.id: root for root in topology.root_complexes}
        held: dict[str, list[str]] = {root.id: [] for root in topology.root_complexes}
        above = {(bridge.pci_bus_id[:-8], bridge.secondary): bridge.root for bridge in topology.bridges}
        declared = {bdf: root.id for root in topology.root_complexes for bdf in root.device_bdfs}
        for device in self.devices:
            address = device.pci_bus_id
            domain, bus = address.split(":")[:2]
            name = declared.get(address) or above.get((domain, int(bus, 16)), f"pci{domain}:{bus}")
            held.setdefault(name, []).append(address)
        return tuple(
            RootComplex(name, root.numa_node, tuple(addresses), root.cpu_affinity)
            for name, addresses in held.items()
            if addresses
            for root in (roots.get(name, RootComplex(name, -1, (), "")),)
        )

    def same_structure(self, other: State) -> bool:
        """True if only `runtime` (or `generation`) differs: a patch will do."""
        return bool(_all_but_runtime(self) == _all_but_runtime(other))


_all_but_generation = attrgetter(*(name for name in State.__struct_fields__ if name != "generation"))
_all_but_runtime = attrgetter(*(name for name in State.__struct_fields__ if name not in ("generation", "runtime")))


FactValue = bool | int | str

IMAGE_FACTS = frozenset({"fabric_ready"})
"""The facts that only the image reads: a change of these alone is a patch."""


class Facts(Spec, frozen=True):
    """What simulators learnt while running, merged by the agent: (name, value) pairs sorted by name.

    Each fact that somebody reads has a property here, which also says what it is as long as nobody has reported it.
    """

    values: tuple[tuple[str, FactValue], ...] = ()

    @classmethod
    def of(cls, **values: FactValue) -> Facts:
        """The facts with these values."""
        return cls(tuple(sorted(values.items())))

    @property
    def fabric_ready(self) -> bool:
        """The fabric manager has written its marker and keeps it."""
        return bool(dict(self.values).get("fabric_ready", False))

    @property
    def imex_software(self) -> str:
        """The checksum of the IMEX software that can be staged, "" if there is none."""
        return str(dict(self.values).get("imex_software", ""))

    def having(self, name: str, value: FactValue) -> Facts:
        """These facts with one set; the very same object if it has that value already."""
        known = dict(self.values)
        if name in known and known[name] == value:
            return self
        return Facts(tuple(sorted({**known, name: value}.items())))

    def same_structure(self, other: Facts) -> bool:
        """True if at most what the image reads differs: a patch will do."""
        return self._structure() == other._structure()

    def _structure(self) -> tuple[tuple[str, FactValue], ...]:
        return tuple(fact for fact in self.values if fact[0] not in IMAGE_FACTS)
