"""The simulator of the GPU driver: its tree below `driver/`, and the image in it that answers every NVML call.

Everything is named by the device's minor or PCI address, never by its index. Who else stages below `driver/` owns other
paths (nvidia-caps/, InfiniBand tools); this simulator neither looks at them nor removes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from simnode.host import (
    Directory,
    File,
    Host,
    Link,
    LiveFile,
    Surface,
    Tree,
    TreeError,
    livetexts,
)
from simnode.nvml.cells import IMAGE
from simnode.nvml.encode import Memory
from simnode.nvml.image import Publisher, encode
from simnode.nvml.layout import IMAGE_NAME
from simnode.simulators import Devices, TreeSimulator, device_files, in_thread
from simnode.simulators.gpudriver import modules, procfs
from simnode.simulators.gpudriver.config import with_num_devices
from simnode.simulators.gpudriver.events import Events
from simnode.simulators.gpudriver.kernellog import LOG, NO_KERNEL, Kernel, KernelLog
from simnode.simulators.gpudriver.modules import FRONTEND_MAJOR, UVM_MAJOR
from simnode.state import Facts, State

FIXED_NODES = (
    ("nvidiactl", FRONTEND_MAJOR, 255),
    ("nvidia-modeset", FRONTEND_MAJOR, 254),
    ("nvidia-uvm", UVM_MAJOR, 0),
    ("nvidia-uvm-tools", UVM_MAJOR, 1),
)
CONFIG = "driver/config"
IMAGE_PATH = f"{CONFIG}/{IMAGE_NAME}"
PROC = "driver/proc/driver/nvidia"


class DriverFiles(msgspec.Struct, frozen=True):
    """The programs that a driver brings: the bytes of libnvidia-ml.so, nvidia-smi, libcuda.so (empty: not staged)."""

    library: bytes
    nvidia_smi: bytes
    cuda: bytes = b""


class GPUDriver(TreeSimulator):
    """Stages the driver's footprint and keeps the image in it up to date.

    `devices` says what a device node is here: a real one (needs CAP_MKNOD), a stand-in (needs a mount namespace of our
    own) or nothing at all. `machine` is the kernel's name of the architecture, `kernel` the rest of it.
    """

    name = "gpudriver"

    def __init__(
        self, host: Host, files: DriverFiles, devices: Devices, machine: str = "x86_64", kernel: Kernel = NO_KERNEL
    ) -> None:
        super().__init__(host)
        self._files = files
        self._devices = devices
        self._machine = machine
        self._nvidia_smi = File("driver/usr/bin/nvidia-smi", files.nvidia_smi, 0o755)
        self._libraries: dict[str, File] = {}
        self._publisher: Publisher | None = None
        self._mapped = (0, 0)
        self._encoded = Memory()
        self._kernel = kernel
        self._modules: tuple[str, tuple[Surface, ...]] = ("", ())
        self._made: tuple[State, Tree] | None = None
        self._events = Events(host.root, KernelLog(host.root, kernel))

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """All surfaces of `state`, the very same tree for the very same state.

        Raises TreeError if the state names what cannot be one component of a path.
        """
        if self._made is None or self._made[0] is not state:
            kernel = (*self._proc(state), *self._kernel_faces(state))
            self._made = state, Tree((*self._nodes(state), *self._programs(state), *kernel, *_config(state)))
        return self._made[1]

    async def patch(self, state: State, facts: Facts) -> None:
        """Publish what the devices of `state` read into the staged image; nothing else changes."""
        await in_thread(lambda: self._publish(state, facts))

    def _differs(self, state: State, facts: Facts) -> bool:
        if self._publisher is not None:
            self._publisher.doubt()
        return super()._differs(state, facts) or livetexts.differ(
            self._host.root, modules.texts(state, self._kernel.procfs)
        )

    def _make(self, state: State, facts: Facts) -> None:
        super()._make(state, facts)
        livetexts.write(self._host.root, modules.texts(state, self._kernel.procfs))
        self._publish(state, facts)

    def _publish(self, state: State, facts: Facts) -> None:
        path = self._host.root / IMAGE_PATH
        there = path.stat()
        mapped = (there.st_dev, there.st_ino)
        if self._publisher is None or self._mapped != mapped:
            self._unmap()
            self._publisher, self._mapped = Publisher(path), mapped
        self._publisher.publish(encode(state, facts, self._encoded))
        self._events.raise_new(state, self._publisher)

    def _unmake(self) -> None:
        self._unmap()
        self._events.forget()
        super()._unmake()

    def _unmap(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None

    def _nodes(self, state: State) -> Iterator[Surface]:
        gpus = ((f"nvidia{device.minor_number}", FRONTEND_MAJOR, device.minor_number) for device in state.devices)
        for name, major, minor in (*FIXED_NODES, *gpus):
            yield from device_files(self._devices, f"driver/dev/{name}", major, minor)

    def _programs(self, state: State) -> Iterator[Surface]:
        yield from self._library("libnvidia-ml.so", self._files.library, state)
        if self._files.cuda:
            yield from self._library("libcuda.so", self._files.cuda, state)
        yield self._nvidia_smi

    def _library(self, name: str, content: bytes, state: State) -> Iterator[Surface]:
        """The library of the driver's release, and the links to it: by its SONAME and without any version."""
        file = f"{name}.{_component(state.software.driver_version)}"
        yield self._library_file(name, f"driver/usr/lib64/{file}", content)
        yield Link(f"driver/usr/lib64/{name}.1", file)
        yield Link(f"driver/usr/lib64/{name}", f"{name}.1")

    def _library_file(self, name: str, path: str, content: bytes) -> File:
        """The library at `path`, the same value as long as the path is: its bytes are fingerprinted once."""
        if name not in self._libraries or self._libraries[name].path != path:
            self._libraries[name] = File(path, content, 0o755)
        return self._libraries[name]

    def _kernel_faces(self, state: State) -> Iterator[Surface]:
        """The modules, the same values as long as their version is; and the file that their log is written to."""
        release = state.software.kernel_version
        if self._modules[0] != release:
            self._modules = release, tuple(modules.surfaces(release))
        yield from self._modules[1]
        yield LiveFile(LOG, 0)

    def _proc(self, state: State) -> Iterator[Surface]:
        release = state.software.kernel_version
        yield Directory(PROC)
        yield File(f"{PROC}/version", procfs.version(release, self._machine), 0o444)
        yield File(f"{PROC}/params", procfs.params(state.imex.channels), 0o444)
        yield Directory(f"{PROC}/gpus")
        for device in state.devices:
            path = f"{PROC}/gpus/{_component(device.pci_bus_id)}/information"
            yield File(path, procfs.information(device, release), 0o444)


def _config(state: State) -> Iterator[Surface]:
    yield Directory(CONFIG)
    yield LiveFile(IMAGE_PATH, IMAGE.size)
    yield File(f"{CONFIG}/config.yaml", with_num_devices(state.config_raw, len(state.devices)))
    if state.mig_profiles_raw:
        yield File(f"{CONFIG}/mig-profiles.yaml", state.mig_profiles_raw)


def _component(text: str) -> str:
    """`text` if it can be (part of) one component of a path."""
    if "/" in text or not text.strip("."):
        raise TreeError(f"{text!r} cannot be one component of a path")
    return text
