"""The `mig:` section: which GPUs are in MIG mode, and how each is partitioned. The one place where a layout is made.

State, the image and so NVML, capabilities and device nodes all follow from what is made here. A layout that the board
cannot have is refused with one line; where instances go, and with it their ids and UUIDs, depends on nothing but the
section and the GPU, so that it is the same after every restart.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from simnode.partitions import (
    MIG_CAP_GPUS,
    MIGGPU,
    MIGComputeInstance,
    MIGComputeProfile,
    MIGGPUInstance,
    MIGProfile,
    MIGState,
    MIGTable,
)
from simnode.profile.document import Node, find, items
from simnode.profile.faults import Fault, quoted
from simnode.profile.identity import Identity
from simnode.profile.mig_fit import Wish, instance_id, places
from simnode.profile.mig_tables import MEMORY_SLICES, Board, board_of, profiles_of
from simnode.profile.overrides import merge
from simnode.profile.shapes import did_you_mean, number, text, word
from simnode.state import DeviceRuntime, DeviceSpec

ALL = "all"
MODES = ("disabled", "enabled")
_MOST = "mig.max_gpu_instances"


class _Asked(Struct, frozen=True):
    """A GPU instance as the section asks for it, and where it does."""

    profile: MIGProfile
    placement: int | None
    compute: tuple[MIGComputeProfile, ...]


def in_mode(root: Node, bases: tuple[Node, ...]) -> tuple[Node, ...]:
    """The keys of each device with the MIG mode that the section gives it; equal ones give one node, as before."""
    made: dict[tuple[int, int], Node] = {}
    found = []
    for base, entry in zip(bases, _entries(root, len(bases)), strict=True):
        if entry is None:
            found.append(base)
            continue
        _, node = entry
        pair = id(base), id(node)
        if pair not in made:
            made[pair] = _with_mode(base, node)
        found.append(made[pair])
    return tuple(found)


def _with_mode(base: Node, entry: Node) -> Node:
    mode = Node(_mode(entry), entry.file, entry.line)
    over = Node({"mig": Node({"mode_current": mode, "mode_pending": mode}, entry.file)}, entry.file)
    board = _board(base)
    if board is None:
        return merge(base, over)
    most = Node(board.compute_slices, entry.file, entry.line)
    return merge(merge(Node({"mig": Node({"max_gpu_instances": most}, entry.file)}, entry.file), base), over)


def in_force(
    layout: MIGState,
    devices: Sequence[tuple[DeviceSpec, DeviceRuntime]],
    keys: Callable[[int], Node],
    faults: list[Fault],
) -> MIGState:
    """The layout less the partitions of GPUs that are not in MIG mode, as an override may have it.

    `keys` are those of a device by its index. Appends a fault for a GPU that is to tell of fewer MIG devices than it
    has, for nobody would find the rest.
    """
    partitioned = {gpu.minor: gpu for gpu in layout.gpus}
    kept = []
    for spec, runtime in devices:
        gpu = partitioned.get(spec.minor_number)
        most = 0 if gpu is None else _most(runtime)
        if gpu is None or most == 0:
            continue
        kept.append(gpu)
        count = sum(len(instance.compute_instances) for instance in gpu.gpu_instances)
        if most < count:
            node = find(keys(spec.index), _MOST) or keys(spec.index)
            message = f"{most} is less than the {count} MIG devices that GPU {spec.index} is partitioned into"
            faults.append(Fault(node.file, _MOST, node.line, message))
    return layout if len(kept) == len(layout.gpus) else MIGState(layout.caps_major, tuple(kept), layout.tables)


def _most(runtime: DeviceRuntime) -> int:
    """How many MIG devices a GPU says that it can have; 0 outside MIG mode."""
    values = dict(runtime.values)
    most = values.get(_MOST)
    return most if isinstance(most, int) and values.get("mig.mode_current") == "enabled" else 0


def tables(bases: Sequence[Node], made: Sequence[Identity], driver: int) -> tuple[MIGTable, ...]:
    """By which profiles the GPUs can be partitioned, with equal boards in one table."""
    minors: dict[tuple[MIGProfile, ...], list[int]] = {}
    for base, identity in zip(bases, made, strict=True):
        board = _board(base)
        if board is not None:
            minors.setdefault(profiles_of(board, driver), []).append(identity.minor_number)
    return tuple(MIGTable(tuple(of_board), profiles) for profiles, of_board in minors.items())


def layouts(
    root: Node, bases: Sequence[Node], made: Sequence[Identity], driver: int, faults: list[Fault]
) -> tuple[MIGGPU, ...]:
    """The partitions of every GPU that the section gives any; appends a fault for each that there cannot be."""
    found = []
    for index, entry in enumerate(_entries(root, len(made))):
        if entry is None:
            continue
        key, node = entry
        if _mode(node) == "disabled":
            continue
        board = _board(bases[index])
        if board is None:
            name = quoted(text(find(bases[index], "name")))
            faults.append(Fault(node.file, key, node.line, f"{name} is a board without MIG"))
            continue
        minor = made[index].minor_number
        if minor >= MIG_CAP_GPUS:
            message = f"the driver has MIG capabilities for GPUs with minor numbers 0 to {MIG_CAP_GPUS - 1} only"
            faults.append(Fault(node.file, key, node.line, message))
            continue
        asked = tuple(_asked(node, key, profiles_of(board, driver), faults))
        instances = _placed(asked, board, made[index].uuid)
        if instances is None:
            faults.append(Fault(node.file, key, node.line, _too_much(asked, board)))
        elif instances:
            found.append(MIGGPU(minor, instances))
    return tuple(found)


def _entries(root: Node, count: int) -> tuple[tuple[str, Node] | None, ...]:
    """The entry that is about each GPU: its own, else the one about all."""
    common: tuple[str, Node] | None = None
    own: dict[int, tuple[str, Node]] = {}
    for at, entry in enumerate(items(find(root, "mig.gpus"))):
        index = find(entry, "index")
        if index is None or text(index) == ALL:
            common = (f"mig.gpus[{at}]", entry)
        else:
            own[number(index) or 0] = (f"mig.gpus[{at}]", entry)
    return tuple(own.get(index, common) for index in range(count))


def _mode(entry: Node) -> str:
    return word(find(entry, "mode"), MODES) or "enabled"


def _board(base: Node) -> Board | None:
    return board_of(number(find(base, "pci.device_id")) or 0)


def _asked(entry: Node, key: str, profiles: tuple[MIGProfile, ...], faults: list[Fault]) -> Iterator[_Asked]:
    by_name = {profile.name: profile for profile in profiles}
    for at, node in enumerate(items(find(entry, "gpu_instances"))):
        here = f"{key}.gpu_instances[{at}]"
        name = text(find(node, "profile")).removeprefix("MIG ")
        profile = by_name.get(name)
        if profile is None:
            hint = did_you_mean(name, by_name) or f"; it has {', '.join(by_name)}"
            faults.append(
                Fault(node.file, f"{here}.profile", node.line, f"{quoted(name)} is no profile of this board{hint}")
            )
            continue
        count, placement = number(find(node, "count")), number(find(node, "placement"))
        if placement is not None and placement not in profile.placements:
            allowed = ", ".join(map(str, profile.placements))
            message = f"{profile.name} can begin at {allowed}, not at {placement}"
            faults.append(Fault(node.file, f"{here}.placement", node.line, message))
            continue
        compute = _compute(node, here, profile, faults)
        for _ in range(1 if count is None else count):
            yield _Asked(profile, placement, compute)


def _compute(node: Node, key: str, profile: MIGProfile, faults: list[Fault]) -> tuple[MIGComputeProfile, ...]:
    """The compute instances of a GPU instance: those that are listed, else one that fills it."""
    listed = find(node, "compute_instances")
    if listed is None:
        return profile.compute[-1:]
    by_name = {compute.name: compute for compute in profile.compute}
    made = []
    for at, entry in enumerate(items(listed)):
        compute = by_name.get(text(entry).removeprefix("MIG "))
        if compute is None:
            message = f"{quoted(text(entry))} is no compute instance of {profile.name}; those are {', '.join(by_name)}"
            faults.append(Fault(entry.file, f"{key}.compute_instances[{at}]", entry.line, message))
        else:
            made.append(compute)
    if places(_wishes(made)) is None:
        need = sum(compute.slices for compute in made)
        message = f"do not fit: {need} compute slices are wanted, and a {profile.name} has {profile.slices}"
        faults.append(Fault(listed.file, f"{key}.compute_instances", listed.line, message))
        return ()
    return tuple(made)


def _wishes(computes: Sequence[MIGComputeProfile]) -> list[Wish]:
    return [Wish(compute.slices, compute.placements) for compute in computes]


def _placed(asked: tuple[_Asked, ...], board: Board, gpu: str) -> tuple[MIGGPUInstance, ...] | None:
    """The instances with ids and UUIDs, in the order of their ids; None if they do not fit."""
    for profile in {one.profile for one in asked}:
        if sum(one.profile == profile for one in asked) > profile.instances:
            return None
    if sum(one.profile.slices for one in asked) > board.compute_slices:
        return None
    pinned = [(one.placement,) if one.placement is not None else one.profile.placements for one in asked]
    starts = places([Wish(one.profile.size, at) for one, at in zip(asked, pinned, strict=True)])
    if starts is None:
        return None
    made = []
    for one, start in zip(asked, starts, strict=True):
        own = instance_id(start, one.profile.size, MEMORY_SLICES[board.compute_slices])
        inner = places(_wishes(one.compute)) or ()
        compute = tuple(
            MIGComputeInstance(at, _uuid(gpu, own, at, profile.name), profile.number, first)
            for at, (profile, first) in enumerate(zip(one.compute, inner, strict=True))
        )
        made.append(MIGGPUInstance(own, compute, one.profile.number, start))
    return tuple(sorted(made, key=lambda instance: instance.id))


def _uuid(gpu: str, gpu_instance: int, compute_instance: int, name: str) -> str:
    """The MIG device's UUID: version 5, as the driver's are, of the GPU's own; another partition has others."""
    return f"MIG-{uuid.uuid5(uuid.UUID(gpu.removeprefix('GPU-')), f'{gpu_instance}/{compute_instance}/{name}')}"


def _too_much(asked: tuple[_Asked, ...], board: Board) -> str:
    """Why they do not fit, in numbers."""
    counts: dict[str, int] = {}
    for one in asked:
        counts[one.profile.name] = counts.get(one.profile.name, 0) + 1
    for one in asked:
        if counts[one.profile.name] > one.profile.instances:
            return f"{counts[one.profile.name]} of {one.profile.name} do not fit on one GPU; {one.profile.instances} do"
    listed = ", ".join(f"{count} x {name}" for name, count in counts.items())
    memory = sum(one.profile.size for one in asked)
    compute = sum(one.profile.slices for one in asked)
    need = f"{memory} of {MEMORY_SLICES[board.compute_slices]} memory slices and {compute} of {board.compute_slices}"
    return f"{listed} do not fit on one GPU: they need {need} compute slices, each at a place of its own"
