"""What must hold under fire: at any moment, whenever it has died down, and against a fresh agent's work."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from simnode.agent import Agent, Reports
from simnode.contracts import Applier, Planner, Simulator, Wanted
from simnode.nvml.cells import DEVICE
from simnode.nvml.cells import NODE as NODE_RECORD
from simnode.nvml.layout import RECORDS, Record
from simnode.simulators.fabricmanager import MARKER
from simnode.simulators.gpudriver import DriverFiles
from simnode.simulators.gpudriver.kernellog import LOG as KERNEL_LOG
from tests.agent_host.running import staged
from tests.fire.field import NODE, Field
from tests.fire.weather import SICK
from tests.simulators.test_patched_image import read

FILES = DriverFiles(b"library", b"nvidia-smi", b"cuda")
HOOK = b"hook"
CDI = "/var/run/cdi"
_REASONS = tuple(map(os.strerror, SICK))


class Node(NamedTuple):
    """A field, and who keeps it."""

    field: Field
    agent: Agent
    simulators: tuple[Simulator, ...]

    @property
    def in_force(self) -> Wanted:
        """What everything is made from."""
        assert self.agent.state is not None
        return self.agent.state, self.agent.facts


def simulators(field: Field, reports: Reports, log: logging.Logger) -> tuple[Simulator, ...]:
    """Those of a host, whatever is wired there."""
    node = field.node
    return node.simulators(FILES, reports, log, hook=HOOK, cdi_directories=(CDI,), lasting=True)


def wanted(node: Node) -> set[str]:
    """Every path that the State in force asks for, below the host's root."""
    paths: set[str] = set()
    for simulator in node.simulators:
        for tree, place in _trees(simulator, node.in_force):
            paths.update(f"{place}{path}" for path in (*tree.paths, *tree.directories))
    if node.in_force[0].fabric.manager_state_dir:
        paths.add(f"{NODE}/{MARKER}")
    return paths


async def whole(node: Node) -> None:
    """Everything is there, nothing is left over, nobody's things were touched, and nobody has plans."""
    assert node.field.touched() == []
    asked = wanted(node)
    missing = asked - node.field.there()
    assert missing == set(), f"missing: {sorted(missing)[:20]}"
    left = node.field.left_over(asked)
    assert left == set(), f"left over: {sorted(left)[:20]}"
    assert names_missing(node.field) == []
    for simulator in node.simulators:
        if isinstance(simulator, Planner):
            assert not await simulator.plan(*node.in_force), f"{simulator.name} still has plans"


def not_whole(node: Node, state: Wanted) -> list[str]:
    """What is not there of what is staged, although the probe says so."""
    lost: list[str] = []
    for simulator in node.simulators:
        tree, _ = next(_trees(simulator, state))
        root = f"{node.field.root}/{NODE}/"
        missing = [path for path in tree.paths if not os.path.lexists(root + path)]
        lost += [f"staged is green, but {simulator.name} lacks {path}" for path in missing[:5]]
    return lost


def names_missing(field: Field) -> list[str]:
    """What published CDI specs name below the node root and is not there."""
    lost: list[str] = []
    for path in (field.root / "run/cdi").glob("*.yaml"):
        if str(path.relative_to(field.root)) in field.foreign:
            continue
        for name in _named(json.loads(path.read_text())):
            if name.startswith(f"/{NODE}/") and not os.path.lexists(f"{field.root}{name}"):
                lost.append(f"{path.name}: {name}")
    return lost


def attributed(records: Iterable[logging.LogRecord], names: set[str]) -> None:
    """What was logged as an error says whose it is; what a disk refused also where and why."""
    for record in records:
        text = record.getMessage()
        assert "\n" not in text and not record.exc_info, f"{text} {record.exc_info}"
        if record.levelno >= logging.ERROR:
            assert getattr(record, "simulator", "") in names, text
            if any(reason in text for reason in _REASONS):
                assert getattr(record, "surface", "") or "/" in text, f"does not say where: {text}"


async def as_fresh(node: Node, log: logging.Logger) -> None:
    """The tree and the image are what a fresh agent makes of this State on another host."""
    scratch = node.field.root.parent / "fresh"
    other = Field.furnished(scratch)
    reports = Reports()
    made = simulators(other, reports, log)
    for simulator in made:
        await simulator.stage(*node.in_force)
    for simulator in made:
        if isinstance(simulator, Applier):
            await simulator.apply(*node.in_force)
    keep = wanted(node)
    mine, fresh = (_made(field.root, keep) for field in (node.field, other))
    differing = sorted(path for path in mine.keys() | fresh.keys() if mine.get(path) != fresh.get(path))
    assert differing == [], [(path, mine.get(path), fresh.get(path)) for path in differing[:4]]
    gpus = len(node.in_force[0].devices)
    images = (read(each.node.node_root, gpus) for each in (node.field, other))
    for number, blocks in enumerate(zip(*images, strict=True)):
        one, two = (_present(block, _EPOCHS if number else _GENERATION) for block in blocks)
        assert one == two, f"the images differ in block {number}: {_differing(one, two, number)}"
    shutil.rmtree(scratch)


def _present(block: bytes, past: Iterable[int]) -> bytes:
    """A record without what tells how many States or identities have been there before."""
    kept = bytearray(block)
    for at in past:
        kept[at : at + 4] = bytes(4)
    return bytes(kept)


def _epochs(record: Record, start: int = 0) -> Iterator[int]:
    for member in record.members:
        at = start + record.offsets[member.name]
        if member.name == "epoch":
            yield at
        elif member.kind in RECORDS:
            for index in range(member.count):
                yield from _epochs(RECORDS[member.kind], at + index * RECORDS[member.kind].size)


_EPOCHS = tuple(_epochs(DEVICE))
_GENERATION = (NODE_RECORD.offsets["generation"], NODE_RECORD.offsets["generation"] + 4)


def _differing(one: bytes, two: bytes, number: int) -> list[str]:
    """The members of a record of the image that differ."""
    record = DEVICE if number else NODE_RECORD
    offsets = sorted((offset, name) for name, offset in record.offsets.items())
    at = {index for index in range(len(one)) if one[index] != two[index]}
    return sorted({max(pair for pair in offsets if pair[0] <= index)[1] for index in at})


def _made(root: Path, keep: set[str]) -> dict[str, object]:
    """What is there for the State's sake, without what tells of the past."""
    past = (f"{NODE}/{KERNEL_LOG}", f"{NODE}/{MARKER}")
    return {path: what for path, what in staged(root).items() if path in keep and path not in past}


def _trees(simulator: Any, state: Wanted) -> Iterator[tuple[Any, str]]:
    """The staged tree of a simulator and, if it publishes, the published one; each with where it lies."""
    yield simulator.tree(*state), f"{NODE}/"
    if isinstance(simulator, Applier):
        published: Any = simulator
        yield published.published(*state), ""


def _named(spec: object) -> Iterator[str]:
    match spec:
        case str(text):
            yield text
        case dict(members):
            for member in members.values():
                yield from _named(member)
        case list(items):
            for item in items:
                yield from _named(item)
