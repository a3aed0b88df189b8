"""The simulator of MIG's capabilities: how container runtimes reach the partitions of a GPU.

The driver has a capability for each GPU instance and each compute instance, and two of its own, to configure and to
monitor. Each has a device below /dev/nvidia-caps and a file below /proc/driver/nvidia/capabilities that tells its
minor; `mig-minors` lists the minors of all that there can be, the same on every machine. On a machine without a
partition none of it is there: that is how a consumer knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from simnode.host import File, Host, Surface, Tree, TreeError
from simnode.host.procfs import Procfs, holder
from simnode.partitions import (
    MIG_CAP_COMPUTE_INSTANCES,
    MIG_CAP_GPU_INSTANCES,
    MIG_CAP_GPUS,
    MIG_CONFIG_MINOR,
    MIG_MONITOR_MINOR,
    Cap,
    MIGState,
    mig_cap,
)
from simnode.simulators import Devices, TreeSimulator, device_files
from simnode.state import Facts, State

DEVICES = "driver/dev/nvidia-caps"
MINORS = "driver/proc/driver/nvidia-caps/mig-minors"
CAPABILITIES = "driver/proc/driver/nvidia/capabilities"
_NAMES = ("nvidia-caps", "nvidia-caps-imex-channels")


def mig_minors() -> bytes:
    """All capabilities that the kernel module makes minors for when it is loaded, a line each, in its order."""
    caps = [Cap("config", MIG_CONFIG_MINOR), Cap("monitor", MIG_MONITOR_MINOR)]
    for gpu in range(MIG_CAP_GPUS):
        for instance in range(MIG_CAP_GPU_INSTANCES):
            caps.append(mig_cap(gpu, instance))
            caps += [mig_cap(gpu, instance, compute) for compute in range(MIG_CAP_COMPUTE_INSTANCES)]
    return "".join(f"{cap.name} {cap.minor}\n" for cap in caps).encode()


class MIGCaps(TreeSimulator):
    """Stages the capabilities of what is partitioned.

    `devices` says what a device is here, as for the GPU driver. `procfs` is the machine's: a device node with the major
    of another driver would be that driver's, such as the machine's memory.
    """

    name = "migcaps"

    def __init__(self, host: Host, devices: Devices, procfs: Procfs) -> None:
        super().__init__(host)
        self._devices = devices
        self._procfs = procfs
        self._minors: File | None = None
        self._made: tuple[State, Tree] | None = None

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """All surfaces, the very same tree for the very same state; none without a partition.

        Raises TreeError for a device node's major that another driver has.
        """
        if state.mig.partitioned() and self._devices == "node":
            _check(state.mig.caps_major, self._procfs("devices"))
        if self._made is None or self._made[0] is not state:
            self._made = state, Tree(self._surfaces(state.mig))
        return self._made[1]

    def _surfaces(self, mig: MIGState) -> Iterator[Surface]:
        caps = mig.caps()
        if not caps:
            return
        if self._minors is None:
            self._minors = File(MINORS, mig_minors(), 0o444)
        yield self._minors
        yield from (File(f"{CAPABILITIES}/{_path(cap)}", _told(cap), 0o444) for cap in caps)
        yield from self._nodes(caps, mig.caps_major)

    def _nodes(self, caps: tuple[Cap, ...], major: int) -> Iterator[Surface]:
        for cap in caps:
            yield from device_files(self._devices, f"{DEVICES}/nvidia-cap{cap.minor}", major, cap.minor, _mode(cap))


def _check(major: int, devices: str) -> None:
    taken = holder(devices, major, _NAMES)
    if taken:
        raise TreeError(f"mig.caps_major: {major} is the major of {taken} on this machine; give one that is free")


def _mode(cap: Cap) -> int:
    """Whoever may configure can do everything, so only root may; the others are open to all who can see them."""
    return 0o400 if cap.minor == MIG_CONFIG_MINOR else 0o444


def _path(cap: Cap) -> str:
    """gpu0/gi7/access is gpu0/mig/gi7/access there; the driver's own are below mig."""
    gpu, slash, rest = cap.name.partition("/")
    return f"{gpu}/mig/{rest}" if slash else f"mig/{cap.name}"


def _told(cap: Cap) -> bytes:
    return f"DeviceFileMinor: {cap.minor}\nDeviceFileMode: {_mode(cap)}\nDeviceFileModify: 1\n".encode()
