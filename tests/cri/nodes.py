"""What stands in for the other simulators: a tree with everything of a State that a spec can name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from simnode.host import CharacterDevice, Directory, File, Host, Link, Surface, Tree
from simnode.partitions import MIGGPU, MIGComputeInstance, MIGGPUInstance, MIGState
from simnode.simulators.cri import CRI, Runtimes
from simnode.state import Facts, State

NODE_ROOT = "/var/lib/simnode"
FACTS = Facts()
HOOK = b"a program"


def staged(state: State, facts: Facts) -> Tree:  # noqa: ARG001
    """A driver, MIG capabilities and trees of the kernel, all below the node root."""
    return Tree(_surfaces(state))


def _surfaces(state: State) -> Iterator[Surface]:
    for minor, name in enumerate(("nvidia-uvm", "nvidia-uvm-tools", "nvidiactl")):
        yield CharacterDevice(f"driver/dev/{name}", 510, minor)
    for device in state.devices:
        yield CharacterDevice(f"driver/dev/nvidia{device.minor_number}", 195, device.minor_number)
    for cap in state.mig.caps():
        yield CharacterDevice(f"driver/dev/nvidia-caps/nvidia-cap{cap.minor}", 236, cap.minor)
    for name in ("libnvidia-ml.so", "libcuda.so"):
        file = f"{name}.{state.software.driver_version}"
        yield File(f"driver/usr/lib64/{file}", state.software.driver_version.encode(), 0o755)
        yield Link(f"driver/usr/lib64/{name}.1", file)
        yield Link(f"driver/usr/lib64/{name}", f"{name}.1")
    yield File("driver/usr/bin/nvidia-smi", b"", 0o755)
    yield Directory("driver/config")
    yield File("driver/proc/driver/nvidia/version", state.software.driver_version.encode())
    if state.topology_raw:
        yield Directory("sys/devices")
        yield Directory("sys/bus")


def partitioned(state: State, *minors: int, instances: int = 2) -> State:
    """The State with these GPUs cut into that many instances."""
    gpus = tuple(
        MIGGPU(
            minor,
            tuple(
                MIGGPUInstance(number, (MIGComputeInstance(0, f"MIG-{minor:08x}-0000-5000-8000-{number:012x}"),))
                for number in range(1, instances + 1)
            ),
        )
        for minor in minors
    )
    return msgspec.structs.replace(state, mig=MIGState(gpus=gpus))


def cri(root: Path, *directories: str) -> CRI:
    """The simulator of a new agent on the host whose root is `root`."""
    host = Host(root / NODE_ROOT[1:], boot_id="boot")
    runtimes = Runtimes(host.elsewhere(root, "host"), directories or ("run/cdi",), NODE_ROOT)
    return CRI(host, runtimes, HOOK, staged)
