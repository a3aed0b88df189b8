"""The part of State that is about MIG: how GPUs can be partitioned, how they are, and the capabilities that follow."""

from __future__ import annotations

from simnode.spec import Spec


class Cap(Spec, frozen=True):
    """A capability of the driver: its name below the capabilities directory, and its device's minor."""

    name: str
    minor: int


class MIGComputeProfile(Spec, frozen=True):
    """A way to cut a compute instance out of a GPU instance; `number` is NVML_COMPUTE_INSTANCE_PROFILE_*.

    It has `slices` compute slices and may begin at one of `placements`.
    """

    number: int
    name: str
    slices: int
    instances: int
    multiprocessors: int
    placements: tuple[int, ...]


class MIGProfile(Spec, frozen=True):
    """A way to cut a GPU instance out of a GPU: one row of `nvidia-smi mig -lgip`.

    `number` is NVML_GPU_INSTANCE_PROFILE_*, `id` the board's own; the instance takes `size` memory slices from one of
    `placements` on, `slices` compute slices, and everything else in these numbers. `instances` is how many fit at most.
    """

    number: int
    id: int
    name: str
    slices: int
    instances: int
    size: int
    placements: tuple[int, ...]
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpegs: int
    ofas: int
    compute: tuple[MIGComputeProfile, ...]


class MIGTable(Spec, frozen=True):
    """The profiles that the GPUs with these device-node minors can be partitioned by."""

    minors: tuple[int, ...]
    profiles: tuple[MIGProfile, ...]


class MIGComputeInstance(Spec, frozen=True):
    """One compute instance: one MIG device as a consumer sees it. `profile` is the number of a MIGComputeProfile."""

    id: int
    uuid: str
    profile: int = 0
    start: int = 0


class MIGGPUInstance(Spec, frozen=True):
    """One GPU instance and the compute instances inside it. `profile` is the number of a MIGProfile."""

    id: int
    compute_instances: tuple[MIGComputeInstance, ...]
    profile: int = 0
    start: int = 0


class MIGGPU(Spec, frozen=True):
    """One partitioned GPU, named by its device-node minor; its instances in the order of their ids."""

    minor: int
    gpu_instances: tuple[MIGGPUInstance, ...]


class MIGState(Spec, frozen=True):
    """Which GPUs are partitioned, and how; and by which tables GPUs can be, partitioned or not."""

    caps_major: int = 236
    gpus: tuple[MIGGPU, ...] = ()
    tables: tuple[MIGTable, ...] = ()

    def partitioned(self) -> bool:
        """True if any GPU has at least one GPU instance."""
        return any(gpu.gpu_instances for gpu in self.gpus)

    def profiles(self, minor: int) -> tuple[MIGProfile, ...]:
        """The profiles of the GPU with that minor; none if it has no MIG."""
        return next((table.profiles for table in self.tables if minor in table.minors), ())

    def caps(self) -> tuple[Cap, ...]:
        """The capabilities that have a device: none without a partition, else the driver's two and each instance's.

        The minors are the kernel module's, which are the same on every machine (nv-caps.c).
        """
        if not self.partitioned():
            return ()
        found = [Cap("config", MIG_CONFIG_MINOR), Cap("monitor", MIG_MONITOR_MINOR)]
        for gpu in self.gpus:
            for instance in gpu.gpu_instances:
                found.append(mig_cap(gpu.minor, instance.id))
                found += [mig_cap(gpu.minor, instance.id, compute.id) for compute in instance.compute_instances]
        return tuple(found)


MIG_CONFIG_MINOR = 1
MIG_MONITOR_MINOR = 2
MIG_CAP_GPUS = 32
"""GPUs that the driver has MIG capabilities for, by device-node minor."""
MIG_CAP_GPU_INSTANCES = 15
MIG_CAP_COMPUTE_INSTANCES = 8


IMEX_MANAGEMENT = Cap("fabric-imex-mgmt", 3 + MIG_CAP_GPUS * MIG_CAP_GPU_INSTANCES * (1 + MIG_CAP_COMPUTE_INSTANCES))
"""The capability to manage IMEX, which the kernel module numbers behind all of MIG's (nv-caps.c)."""


def mig_cap(gpu: int, gpu_instance: int, compute_instance: int | None = None) -> Cap:
    """The capability of an instance of the GPU with that device-node minor."""
    in_gpu = gpu * MIG_CAP_GPU_INSTANCES + gpu_instance
    minor = 3 + in_gpu * (1 + MIG_CAP_COMPUTE_INSTANCES)
    name = f"gpu{gpu}/gi{gpu_instance}"
    if compute_instance is None:
        return Cap(f"{name}/access", minor)
    return Cap(f"{name}/ci{compute_instance}/access", minor + 1 + compute_instance)
