"""What a container gets: two CDI specs, made from a State and from the tree that the node's simulators stage for it.

A spec names nothing that is not in that tree, so what somebody does not stage (MIG capabilities of a GPU that is not
partitioned, PCI functions of a profile that has none) is never asked for. The library lies where every loader looks
without a cache (glibc's /usr/lib64, musl's and Debian's /usr/lib); the image comes as a directory, so that a container
sees whatever is published later.

`nvidia.com/gpu` is the whole, for device plugins and people. The injector's kind has a vendor of its own, so that one
component alone gives a container its devices; that component brings the library itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from simnode.host import CharacterDevice, Tree
from simnode.partitions import MIGGPU, Cap, mig_cap
from simnode.simulators.cri.spec import ALL, Device, DeviceNode, Edits, Hook, Mount, Spec, spec
from simnode.state import DeviceSpec, State

KIND = "nvidia.com/gpu"
INJECTOR_KIND = "simnode.internal/gpu"
HOOK = "cri/container-hook"
_DEV = "driver/dev"
_CAPS = f"{_DEV}/nvidia-caps"
_READ_ONLY = ("ro", "nosuid", "nodev", "bind")
_PROGRAM_SECONDS = 10

_FILES = (
    *(
        (f"driver/usr/lib64/{name}", f"{directory}/{name}")
        for directory in ("/usr/lib64", "/usr/lib")
        for name in ("libnvidia-ml.so.1", "libcuda.so.1", "libcuda.so")
    ),
    ("driver/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"),
)
_DIRECTORIES = (("driver/config", "/etc/simnode"),)
# What no runtime lets a spec mount: whatever lies below /proc, and directories of sysfs that other devices share.
_BOUND = (("driver/proc/driver", "/proc/driver"), ("proc/bus/pci", "/proc/bus/pci"), ("proc/modules", "/proc/modules"))
_LAID_OVER = (("sys/devices", "/sys/devices"), ("sys/bus", "/sys/bus"), ("sys/module", "/sys/module"))


class Node(Struct, frozen=True):
    """What is staged: `tree`, below `root`, which is the node root's path as the host's own programs know it."""

    root: str
    tree: Tree

    def has(self, path: str) -> bool:
        """True if there is a surface or a directory at this path below the node root."""
        return path in self.tree or path in self.tree.directories

    def nodes(self, *paths: str) -> tuple[DeviceNode, ...]:
        """Device nodes by their paths below the node root, those alone that are staged."""
        return tuple(
            DeviceNode("/dev" + path.removeprefix(_DEV), f"{self.root}/{path}")
            for path in paths
            if isinstance(self.tree.get(path), CharacterDevice)
        )


def specs(state: State, node: Node) -> dict[str, Spec]:
    """The specs by the names of their files; none where there are no device nodes to give away."""
    control = node.nodes(*_control(node.tree))
    gpus = [node.nodes(f"{_DEV}/nvidia{device.minor_number}") for device in state.devices]
    devices = list(_gpus(state, gpus))
    if not devices:
        return {}
    migs = list(_migs(state, node))
    every = dict.fromkeys(path for device in (*devices, *migs) for path in device.container_edits.device_nodes)
    whole = Device(ALL, Edits(device_nodes=tuple(every)))
    injected = Device(ALL, Edits(device_nodes=(*every, *control)))
    by_index = [device for device in devices if device.name.isdigit()]
    marked = Edits(env=("SIMNODE_DEVICE_SOURCE=cdi",), hooks=tuple(_hooks(node)))
    return {
        "nvidia.yaml": spec(KIND, (*devices, whole, *migs), _for_all(node, control)),
        "simnode.yaml": spec(INJECTOR_KIND, (*by_index, injected), marked),
    }


def _for_all(node: Node, control: tuple[DeviceNode, ...]) -> Edits:
    """What a container gets with any GPU. `void` keeps NVIDIA's own runtime from injecting a second time."""
    mounts = (
        Mount(f"{node.root}/{source}", target, _READ_ONLY)
        for source, target in (*_FILES, *_DIRECTORIES)
        if node.has(source)
    )
    return Edits(("NVIDIA_VISIBLE_DEVICES=void",), control, tuple(mounts), tuple(_hooks(node)))


def _hooks(node: Node) -> Iterator[Hook]:
    """Our own program, which mounts what a spec cannot have mounted; none where there is nothing of that."""
    orders = [
        word
        for order, places in (("bind", _BOUND), ("overlay", _LAID_OVER))
        for source, target in places
        if node.has(source)
        for word in (order, f"{node.root}/{source}", target)
    ]
    if orders and node.has(HOOK):
        yield Hook("createContainer", f"{node.root}/{HOOK}", ("container-hook", *orders), _PROGRAM_SECONDS)


def _gpus(state: State, nodes: list[tuple[DeviceNode, ...]]) -> Iterator[Device]:
    """Each GPU by its index and by its UUID."""
    for device, paths in zip(state.devices, nodes, strict=True):
        if paths:
            for name in filter(None, (str(device.index), device.uuid)):
                yield Device(name, Edits(device_nodes=paths))


def _migs(state: State, node: Node) -> Iterator[Device]:
    """Each MIG device by its UUID, and as GPU:MIG, both from 0; the latter counts as NVML does."""
    by_minor = {device.minor_number: device for device in state.devices}
    for gpu in state.mig.gpus:
        if gpu.minor in by_minor:
            yield from _migs_of(gpu, by_minor[gpu.minor], node)


def _migs_of(gpu: MIGGPU, device: DeviceSpec, node: Node) -> Iterator[Device]:
    found = ((instance, compute) for instance in gpu.gpu_instances for compute in instance.compute_instances)
    for at, (instance, compute) in enumerate(found):
        caps = (mig_cap(gpu.minor, instance.id), mig_cap(gpu.minor, instance.id, compute.id))
        paths = node.nodes(f"{_DEV}/nvidia{gpu.minor}", *map(_cap_path, caps))
        if len(paths) == 1 + len(caps):
            for name in filter(None, (compute.uuid, f"{device.index}:{at}")):
                yield Device(name, Edits(device_nodes=paths))


def _cap_path(cap: Cap) -> str:
    return f"{_CAPS}/nvidia-cap{cap.minor}"


def _control(tree: Tree) -> Iterator[str]:
    """The nodes directly below dev that are no GPU's: nvidiactl, nvidia-uvm and their like."""
    for surface in tree:
        directory, _, name = surface.path.rpartition("/")
        if directory == _DEV and not name.removeprefix("nvidia").isdigit():
            yield surface.path
