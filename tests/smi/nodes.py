"""Images for the tests: the h100 board with something changed, as the bytes of one publish."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import msgspec

from simnode.nvml.cells import DEVICE, NODE
from simnode.nvml.encode import encode
from simnode.nvml.layout import MIG, PROCESS
from simnode.profile import Options, compile_state, load_board
from simnode.state import DeviceRuntime, LinkSpec, ProcessSpec, Refusal, State, Value

DRIVER = "550.163.01"
OTHERS_MEMORY = 2**64 - 1
"""What a process's memory reads where the caller may not know it."""


@cache
def node(gpus: int = 2, driver: str = DRIVER) -> State:
    """An idle h100 node."""
    return compile_state(load_board("h100"), Options(gpus=gpus, driver_version=driver), {})


def encoded(state: State) -> bytes:
    """The records of the node and its devices, one after another."""
    return b"".join(encode(state))


def reading(values: Mapping[str, Value], *, gpus: int = 2, only: int | None = None) -> State:
    """A node on every GPU of which, or only on one, these cells read these values."""
    return change(node(gpus), values, only)


def change(state: State, values: Mapping[str, Value], only: int | None = None) -> State:
    """The node, with these values on every GPU or only on one."""

    def changed(runtime: DeviceRuntime) -> DeviceRuntime:
        return msgspec.structs.replace(runtime, values=tuple(sorted((dict(runtime.values) | dict(values)).items())))

    return _changed(state, changed, only)


def refusing(*keys: str, code: int, gpus: int = 1) -> State:
    """A node that refuses these cells with `code`."""
    return reading(dict.fromkeys(keys, Refusal(code)), gpus=gpus)


def named(*names: str) -> State:
    """A node with a GPU of each name."""
    state = node(len(names))
    devices = zip(state.devices, names, strict=True)
    return msgspec.structs.replace(state, devices=tuple(msgspec.structs.replace(d, name=n) for d, n in devices))


def addressed(*bus_ids: str) -> State:
    """A node with a GPU at each PCI address."""
    state = node(len(bus_ids))
    devices = zip(state.devices, bus_ids, strict=True)
    return msgspec.structs.replace(state, devices=tuple(msgspec.structs.replace(d, pci_bus_id=b) for d, b in devices))


def lost(*indices: int, gpus: int = 4, code: int = 15) -> State:
    """A node of which these GPUs answer `code` to everything."""
    state = node(gpus)
    for index in indices:
        state = _changed(state, lambda runtime: msgspec.structs.replace(runtime, lost=code), index)
    return state


def running(*processes: ProcessSpec, gpus: int = 2, only: int | None = None) -> State:
    """A node with these processes on every GPU, or only on one."""
    return _changed(node(gpus), lambda runtime: msgspec.structs.replace(runtime, processes=processes), only)


def _changed(state: State, changed: Callable[[DeviceRuntime], DeviceRuntime], only: int | None) -> State:
    runtimes = tuple(changed(r) if only in (None, i) else r for i, r in enumerate(state.runtime.devices))
    return msgspec.structs.replace(state, runtime=msgspec.structs.replace(state.runtime, devices=runtimes))


@dataclass(frozen=True)
class Partition:
    """A MIG device of the image: memory in MiB, engines in the order copy, decode, encode, JPEG, OFA."""

    gpu_instance: int
    compute_instance: int
    profile: str = "1g.10gb"
    multiprocessors: int = 16
    engines: tuple[int, int, int, int, int] = (1, 1, 0, 1, 0)
    total: int = 9984
    used: int = 12
    bar1: int = 16383
    present: bool = True


def partitioned(state: State, gpus: Mapping[int, tuple[Partition, ...]]) -> bytes:
    """The publish of `state` with MIG devices on these GPUs, as the compiler of MIG layouts will make them."""
    block = bytearray(encoded(state))
    for gpu, partitions in gpus.items():
        for place, partition in enumerate(partitions):
            start = NODE.size + gpu * DEVICE.size + DEVICE.offsets["mig"] + place * MIG.size
            block[start : start + MIG.size] = _mig(gpu, place, partition)
    return bytes(block)


def with_instances(block: bytes, gpu: int, instances: Mapping[int, tuple[int, int]]) -> bytes:
    """The publish with the processes of a GPU put onto (GPU instance, compute instance), by their place."""
    changed = bytearray(block)
    for place, ids in instances.items():
        start = NODE.size + gpu * DEVICE.size + DEVICE.offsets["process"] + place * PROCESS.size
        struct.pack_into("<II", changed, start + PROCESS.offsets["gpu_instance"], *ids)
    return bytes(changed)


def _mig(gpu: int, place: int, partition: Partition) -> bytes:
    record = bytearray(MIG.size)
    copy, decode, encoders, jpeg, ofa = partition.engines
    numbers = {
        "present": partition.present,
        "gpu_instance": partition.gpu_instance,
        "compute_instance": partition.compute_instance,
        "multiprocessors": partition.multiprocessors,
        "copy_engines": copy,
        "decoders": decode,
        "encoders": encoders,
        "jpegs": jpeg,
        "ofas": ofa,
    }
    for name, value in numbers.items():
        struct.pack_into("<I", record, MIG.offsets[name], value)
    sizes = {
        "memory_total_bytes": partition.total,
        "memory_used_bytes": partition.used,
        "bar1_total_bytes": partition.bar1,
    }
    for name, mib in sizes.items():
        struct.pack_into("<Q", record, MIG.offsets[name], mib << 20)
    texts = {
        "name": f"NVIDIA H100 80GB HBM3 MIG {partition.profile}",
        "uuid": f"MIG-{gpu:08x}-0000-5000-8000-{place:012x}",
    }
    for name, text in texts.items():
        start = MIG.offsets[name]
        record[start : start + len(text)] = text.encode()
    return bytes(record)


def process(
    pid: int, kind: str = "C", name: str = "/usr/bin/python3", mib: int = 512, *, used: int | None = None
) -> ProcessSpec:
    """A process; `used` in bytes wins over `mib`."""
    return ProcessSpec(pid, kind, name, mib << 20 if used is None else used)


def linked(state: State, links: Mapping[int, Sequence[LinkSpec]]) -> State:
    """The node with these NVLinks on these GPUs."""
    for gpu, specs in links.items():
        state = _changed(state, partial(msgspec.structs.replace, links=tuple(specs)), gpu)
    return state
