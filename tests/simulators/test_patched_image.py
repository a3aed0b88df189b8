"""A patch is as good as a new agent: the image reads as a fresh one would, and nothing outside it is touched."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from simnode.host import Host
from simnode.nvml.cells import BY_KEY, CELLS, DEVICE, IMAGE, NODE, SLOT, Cell
from simnode.nvml.layout import COUNTER, RECORDS, Record
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.simulators.gpudriver.simulator import IMAGE_PATH
from simnode.state import (
    ClockTable,
    Counter,
    DeviceRuntime,
    FabricState,
    Facts,
    Gauge,
    LinkSpec,
    LoadSpec,
    ProcessSpec,
    Refusal,
    Runtime,
    State,
    Value,
)
from tests.examples import examples
from tests.simulators.states import state

FILES = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi")
GPUS = 3

_NUMBERS = st.integers(0, (1 << 31) - 1)
_RATES = st.floats(0, 1e6)
_BY_KIND: dict[str, st.SearchStrategy[Value]] = {
    "word": _NUMBERS,
    "int": _NUMBERS | st.integers(-50, -1),
    "wide": st.integers(0, (1 << 64) - 1),
    "gauge": _NUMBERS | st.builds(Gauge, st.integers(1000, 9000), st.integers(-1000, 1000)),
    "counter": _NUMBERS | st.builds(Counter, _NUMBERS, _RATES, _RATES),
    "guid": st.binary(min_size=16, max_size=16).map(bytes.hex),
    "text": st.text("abcäö-. ", max_size=8),
}
# Values from which others beside their own cell are made
_LEADERS: dict[str, st.SearchStrategy[Value]] = {
    "nvlink.version": st.integers(1, 6),
    "fabric.state": st.sampled_from(["auto", "completed"]),
}
# An identity is no reading: whoever changes it makes another device.
_READ = [cell for cell in CELLS if cell.key != "uuid"]


def _values(cell: Cell) -> st.SearchStrategy[tuple[str, Value]]:
    chosen = st.sampled_from(sorted(cell.choices)) if cell.choices else _BY_KIND[cell.kind]
    chosen = _LEADERS.get(cell.key, chosen)
    return st.tuples(st.just(cell.key), chosen | st.builds(Refusal, st.integers(1, 999)))


_KEYS = st.sampled_from(_READ) | st.sampled_from([cell for cell in _READ if cell.key in _LEADERS])
_SETTINGS = st.lists(_KEYS.flatmap(_values), max_size=6).map(lambda pairs: tuple(sorted(dict(pairs).items())))
_LINKS = st.builds(
    LinkSpec, st.booleans(), st.sampled_from(["switch", "gpu"]), st.just("0000:08:00.0"), st.integers(-1, GPUS - 1)
)
_RUNTIMES = st.builds(
    DeviceRuntime,
    _SETTINGS,
    st.builds(LoadSpec, st.sampled_from(["idle", "steady", "wave"]), st.just(0), st.integers(0, 100)),
    st.lists(st.builds(ClockTable, st.integers(1, 9), st.just((2, 1))), max_size=2).map(tuple),
    st.lists(st.builds(ProcessSpec, st.integers(1, 9), st.just("C"), st.just("x"), _NUMBERS), max_size=2).map(tuple),
    st.lists(_LINKS, max_size=3).map(tuple),
    st.sampled_from([0, 15]),
)
_FACTS = st.booleans().map(lambda ready: Facts.of(fabric_ready=ready))


@st.composite
def changed(draw: st.DrawFn, old: DeviceRuntime) -> DeviceRuntime:
    """The same device again: as it was, with other values, with a fault, or in every way another."""
    match draw(st.sampled_from(["same", "values", "lost", "all"])):
        case "values":
            redrawn = tuple(draw(_values(BY_KEY[key])) for key, _ in old.values)
            return msgspec.structs.replace(old, values=redrawn)
        case "lost":
            return msgspec.structs.replace(old, lost=15 - old.lost)
        case "all":
            return draw(_RUNTIMES)
    return old


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[State, Facts]]:
    """What is staged first, and what it is patched to, one after the other."""
    runtimes = draw(st.lists(_RUNTIMES, min_size=GPUS, max_size=GPUS))
    history = [(node(runtimes), draw(_FACTS))]
    for _ in range(draw(st.integers(1, 3))):
        runtimes = [draw(changed(old)) for old in runtimes]
        history.append((node(runtimes), draw(_FACTS)))
    return history


def node(runtimes: list[DeviceRuntime]) -> State:
    fabric = FabricState(enabled=True, manager_state_dir="/run/fm", bandwidth_per_link_mbps=26562)
    return msgspec.structs.replace(state(GPUS), fabric=fabric, runtime=Runtime(tuple(runtimes)))


def anchors(record: Record, start: int = 0) -> Iterator[int]:
    """Where in `record` there are counters."""
    for member in record.members:
        if member.kind in RECORDS:
            inner = RECORDS[member.kind]
            for at in range(member.count):
                begin = start + record.offsets[member.name] + at * inner.size
                yield from [begin] if inner is COUNTER else anchors(inner, begin)


ANCHORS = tuple(anchors(DEVICE))


def read(root: Path, gpus: int = GPUS) -> list[bytes]:
    """What readers of the image read: the node's record and each device's, without what anchors the counters."""
    with (root / IMAGE_PATH).open("rb") as image:

        def part(at: int, size: int) -> bytearray:
            image.seek(at)
            return bytearray(image.read(size))

        done = int.from_bytes(part(IMAGE.records["header"].offsets["done"], 8), "little")
        slot = IMAGE.offsets["slot"] + (done & 1) * SLOT.size
        node = part(slot + SLOT.offsets["node"], NODE.size)
        devices = [part(slot + SLOT.offsets["device"] + gpu * DEVICE.size, DEVICE.size) for gpu in range(gpus)]
    blank(node, NODE.offsets["counters_until"], 8)
    for block in devices:
        blank(block, DEVICE.offsets["old_curve"], RECORDS["curve"].size)
        for at in ANCHORS:
            blank(block, at + COUNTER.offsets["anchor"], COUNTER.offsets["status"] - COUNTER.offsets["anchor"])
    return [bytes(block) for block in (node, *devices)]


def blank(block: bytearray, at: int, size: int) -> None:
    block[at : at + size] = bytes(size)


def outside(root: Path) -> dict[str, tuple[int, int]]:
    """Everything but the image: what it is, and when anything of it was last changed."""
    there = {str(path.relative_to(root)): path.lstat() for path in root.rglob("*")}
    return {path: (seen.st_ino, seen.st_ctime_ns) for path, seen in there.items() if path != IMAGE_PATH}


@examples(25)
@given(histories())
def test_patched_the_image_reads_as_a_fresh_agents_and_nothing_outside_it_changes(
    history: list[tuple[State, Facts]],
) -> None:
    async def main(patched: Path, fresh: Path) -> None:
        driver = GPUDriver(Host(patched, boot_id="boot"), FILES, "none")
        await driver.stage(*history[0])
        before = outside(patched)
        for wanted in history[1:]:
            await driver.patch(*wanted)
        assert outside(patched) == before
        await GPUDriver(Host(fresh, boot_id="boot"), FILES, "none").stage(*history[-1])
        assert read(patched) == read(fresh)

    with tempfile.TemporaryDirectory() as patched, tempfile.TemporaryDirectory() as fresh:
        asyncio.run(main(Path(patched), Path(fresh)))


def test_the_anchors_left_out_are_those_of_every_counter() -> None:
    """Else the property above would hold for too little."""
    counters = [cell for cell in CELLS if cell.kind == "counter"]
    links = next(member.count for member in DEVICE.members if member.name == "link")
    assert len(ANCHORS) == len(counters) + 2 * links


def test_what_somebody_wrote_over_an_idle_device_is_mended_by_the_first_patch_after_a_look(tmp_path: Path) -> None:
    def at(degrees: int) -> State:
        values = [(("thermal.temperature_gpu_c", degrees if gpu == 0 else 30),) for gpu in range(GPUS)]
        return node([DeviceRuntime(each) for each in values])

    async def test() -> list[list[bytes]]:
        driver = GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "none")
        facts = Facts()
        await driver.stage(at(30), facts)
        for degrees in (31, 32, 33):
            await driver.patch(at(degrees), facts)
        whole = read(tmp_path)
        with (tmp_path / IMAGE_PATH).open("r+b") as image:
            for slot in range(2):
                place = IMAGE.offsets["slot"] + slot * SLOT.size + SLOT.offsets["device"] + 2 * DEVICE.size
                image.seek(place + DEVICE.offsets["thermal_temperature_gpu_c"])
                image.write(b"\xff")
        damaged = read(tmp_path)
        await driver.plan(at(33), facts)
        await driver.patch(at(34), facts)
        return [whole, damaged, read(tmp_path)]

    whole, damaged, mended = asyncio.run(test())
    assert damaged[3] != mended[3] == whole[3]
