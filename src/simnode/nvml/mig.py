"""What of a device's record is about MIG: the board's profiles, the GPU instances and the MIG devices in them.

Nothing is decided here: the State says what there is. What remains to be made beside it is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from msgspec import Struct

from simnode.nvml import layout
from simnode.nvml.cells import DEVICE
from simnode.nvml.values import ImageError, text
from simnode.partitions import MIGGPU, MIGComputeInstance, MIGComputeProfile, MIGGPUInstance, MIGProfile

_PROFILE = struct.Struct("<14HBB2xI8s24s")
_COMPUTE = struct.Struct("<4BH8s")
_GPU_INSTANCE = struct.Struct(f"<5I{layout.MAX_COMPUTE_PROFILES}I")
_MIG = struct.Struct("<15I4x4Q96s96s")
_MIB = 1 << 20
_ALL_SLICES = (1 << 8) - 1

_Span = tuple[int, int]


class Partitions(Struct, frozen=True):
    """By which profiles a GPU can be partitioned, and how it is."""

    profiles: tuple[MIGProfile, ...] = ()
    gpu: MIGGPU | None = None


class _Device(Struct, frozen=True):
    """A MIG device: a compute instance, in which GPU instance, of what profiles."""

    gpu_instance: int
    instance: MIGComputeInstance
    profile: MIGProfile
    compute: MIGComputeProfile


def put_partitions(block: bytearray, partitions: Partitions, gpu_name: str, bar1_bytes: int) -> None:
    """Write them into the record of a GPU with this name and so much BAR1. Raises ImageError."""
    instances = partitions.gpu.gpu_instances if partitions.gpu is not None else ()
    _fit(partitions.profiles, layout.MAX_MIG_PROFILES, "profiles")
    _fit(instances, layout.MAX_GPU_INSTANCES, "GPU instances")
    profiles = {profile.number: profile for profile in partitions.profiles}
    try:
        taken = [(profiles[instance.profile], instance.start) for instance in instances]
        devices = [_devices(instance, profiles[instance.profile]) for instance in instances]
    except KeyError as error:
        raise ImageError(f"mig: the board has no profile {error}") from None
    slices = max((profile.slices for profile in partitions.profiles), default=0)
    for at, profile in enumerate(partitions.profiles):
        _put_profile(block, at, profile, taken, slices)
    for at, instance in enumerate(instances):
        _put_instance(block, at, instance, profiles[instance.profile])
    listed = [device for of_instance in devices for device in of_instance]
    _fit(listed, layout.MAX_MIG_DEVICES, "MIG devices")
    struct.pack_into("<I", block, DEVICE.offsets["mig_count"], len(listed))
    whole = max((profile.size for profile in partitions.profiles), default=1)
    for at, device in enumerate(listed):
        share = max(bar1_bytes * device.profile.size // whole - _MIB, 0)
        _put_device(block, at, device, f"{gpu_name} MIG {device.compute.name}", share)


def _devices(instance: MIGGPUInstance, profile: MIGProfile) -> list[_Device]:
    by_number = {compute.number: compute for compute in profile.compute}
    return [
        _Device(instance.id, compute, profile, by_number[compute.profile]) for compute in instance.compute_instances
    ]


def most_beside(size: int, placements: Sequence[int], taken: Sequence[_Span]) -> int:
    """How many runs of `size` slices from one of `placements` on are free beside what is taken: (start, size) each."""
    free = _ALL_SLICES
    for start, length in taken:
        free &= ~(((1 << length) - 1) << start)
    count = 0
    for start in placements:
        mask = ((1 << size) - 1) << start
        if free & mask == mask:
            free &= ~mask
            count += 1
    return count


def _put_profile(
    block: bytearray, at: int, profile: MIGProfile, taken: Sequence[tuple[MIGProfile, int]], slices: int
) -> None:
    made = sum(other.number == profile.number for other, _ in taken)
    free = most_beside(profile.size, profile.placements, [(start, other.size) for other, start in taken])
    unused = slices - sum(other.slices for other, _ in taken)
    remaining = max(min(profile.instances - made, free, unused // profile.slices), 0)
    start = DEVICE.offsets["mig_profile"] + at * layout.MIG_PROFILE.size
    _PROFILE.pack_into(
        block, start, 1, profile.number, profile.id, profile.slices, profile.instances, remaining,
        profile.multiprocessors, profile.copy_engines, profile.decoders, profile.encoders, profile.jpegs, profile.ofas,
        "+gfx" in profile.name, profile.size, len(profile.placements), len(profile.compute), profile.memory_mib,
        bytes(profile.placements), text(f"MIG {profile.name}", 24),
    )  # fmt: skip
    start += layout.MIG_PROFILE.offsets["compute"]
    for place, compute in enumerate(profile.compute):
        _COMPUTE.pack_into(
            block, start + place * layout.MIG_COMPUTE.size, compute.number, compute.slices, compute.instances,
            len(compute.placements), compute.multiprocessors, bytes(compute.placements),
        )  # fmt: skip


def _put_instance(block: bytearray, at: int, instance: MIGGPUInstance, profile: MIGProfile) -> None:
    slices = {compute.number: compute.slices for compute in profile.compute}
    taken = [(compute.start, slices[compute.profile]) for compute in instance.compute_instances]
    remaining = [most_beside(compute.slices, compute.placements, taken) for compute in profile.compute]
    remaining += [0] * (layout.MAX_COMPUTE_PROFILES - len(remaining))
    start = DEVICE.offsets["gpu_instance"] + at * layout.GPU_INSTANCE.size
    _GPU_INSTANCE.pack_into(block, start, 1, instance.id, profile.number, instance.start, profile.size, *remaining)


def _put_device(block: bytearray, at: int, device: _Device, name: str, bar1_bytes: int) -> None:
    profile, compute, instance = device.profile, device.compute, device.instance
    start = DEVICE.offsets["mig"] + at * layout.MIG.size
    _MIG.pack_into(
        block, start, 1, 0, device.gpu_instance, instance.id, profile.number, compute.number,
        compute.multiprocessors, profile.copy_engines, profile.decoders, profile.encoders, profile.jpegs, profile.ofas,
        profile.slices, compute.slices, instance.start, profile.memory_mib * _MIB, 0, 0, bar1_bytes, _text(name),
        _text(instance.uuid),
    )  # fmt: skip


def _text(value: str) -> bytes:
    try:
        return text(value, 96)
    except ValueError as error:
        raise ImageError(f"mig: {error}") from None


def _fit(things: Sequence[object], most: int, what: str) -> None:
    if len(things) > most:
        raise ImageError(f"mig: {len(things)} {what} are more than {most}")
