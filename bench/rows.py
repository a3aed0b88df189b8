"""The numbers that simnode holds, each beside its bound. A group is one measurement that yields several rows."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import elf
from bench import measure, replay
from bench.agent import AGENT_RSS
from bench.wave import wave_times
from tests.consumers import fetch


@dataclass(frozen=True)
class Row:
    """One number; it holds if `value` <= `bound`. `against` says what a ratio or difference is taken of."""

    name: str
    value: float
    unit: str
    bound: float
    against: str = ""


# What the bounds in nanoseconds and milliseconds were set on: CLOCK_MONOTONIC there, and a process that does nothing.
# On a machine that is slower at the moment (its clock tells, in the same run) they grow in proportion, never shrink.
REFERENCE_CLOCK_NS = 37.0
REFERENCE_PROCESS_MS = 0.46


def slowness(measured: float, reference: float) -> float:
    """How much longer this machine takes than the reference, at least 1."""
    return max(1.0, measured / reference)


GETTER_RUNS = 5

LOAD = ("--board", "h100", "--set", "load.pattern=wave", "--set", "load.max=90", "--set", "load.period_s=30")


def library() -> Iterator[Row]:
    """The file itself."""
    path = measure.ROOT / "src" / "simnode" / "_native" / "libnvidia-ml.so"
    yield Row("libnvidia-ml.so, size", path.stat().st_size / 1024, "KiB", 300)
    yield Row("libnvidia-ml.so, breaches of its contract", len(elf.faults(path)), "", 0)


def getters() -> Iterator[Row]:
    """Constants on an idle node, gauges on a loaded one: nanoseconds per call and thread."""
    program = measure.compiled("getters")
    idle, loaded = _getters(program), _getters(program, options=LOAD)
    for name in ("temperature", "utilization", "memory", "handle"):
        for threads in (1, 2):
            clock = idle["monotonic", threads]
            bound = 10 * slowness(clock, REFERENCE_CLOCK_NS)
            label = f"{name}, constant, {threads} thread(s)"
            yield Row(label, idle[name, threads], "ns", bound, f"clock {clock:.1f} ns")
    for name, gauges in (("temperature", 1), ("power", 1), ("utilization", 2)):
        for threads in (1, 2):
            label = f"{name}, {'gauge' if gauges == 1 else 'two gauges'}, {threads} thread(s)"
            taken, coarse, monotonic = loaded[name, threads], loaded["coarse", threads], loaded["monotonic", threads]
            against = f"{taken:.1f} ns, coarse clock {coarse:.1f} ns"
            bound = 8 * gauges * slowness(monotonic, REFERENCE_CLOCK_NS)
            yield Row(f"{label}, over the coarse clock", taken - coarse, "ns", bound, against)
            yield Row(f"{label}, to the clock", taken / monotonic, "x", 0.5, f"clock {monotonic:.1f} ns")


def _getters(program: Path, options: tuple[str, ...] = ("--board", "h100")) -> dict[tuple[str, int], float]:
    """The quickest of several runs, as a whole: a busy neighbour slows everything but the clock down to a half."""
    runs = []
    for _ in range(GETTER_RUNS):
        lines = (line.split() for line in measure.in_node(program, options=options).splitlines())
        runs.append({(name, int(threads)): float(value) for name, threads, value in lines})
    return min(runs, key=lambda run: sum(run.values()))


def process() -> Iterator[Row]:
    """A fresh process that uses NVML, over the same process without."""
    monitor = measure.compiled("monitor")
    nothing, used = measure.spawned([monitor], [monitor, "init"], runs=501, inside=True)
    bound = 0.3 * slowness(nothing.wall, REFERENCE_PROCESS_MS)
    taken = used.wall - nothing.wall
    yield Row("init + shutdown in a fresh process", taken, "ms", bound, f"over {nothing.wall:.2f} ms")
    before, after = (
        [int(number) for number in line.split()] for line in measure.in_node(monitor, "footprint").splitlines()
    )
    yield Row(
        "resident memory after init", (after[0] - before[0]) / 1024, "MiB", 0.5, f"over {before[0] / 1024:.1f} MiB"
    )
    yield Row("threads after init", after[1], "", 1)
    yield Row("signal handlers after init", after[2], "", 0)


# A view's bound in milliseconds, on a machine where nvidia-smi fails to find a library in REFERENCE_SMI_MS; and how
# many times what nvidia-smi takes by itself it may take. What is more of the two holds.
REFERENCE_SMI_MS = 1.4
VIEWS: tuple[tuple[str, tuple[str, ...], float, float], ...] = (
    ("default", (), 3, 1.1),
    ("topo -m", ("topo", "-m"), 4, 1.1),
    ("-q", ("-q",), 8, 1.05),
    ("-q -x", ("-q", "-x"), 8, 1.05),
)


def real_nvidia_smi() -> Iterator[Row]:
    """The real program in a node, against itself failing to find a library, and against a library that takes no time.

    The second tells how much of a view is nvidia-smi's own.
    """
    found, reasons = fetch.fetch(fetch.cache_directory(os.environ))
    if "nvidia-smi-550" not in found:
        raise measure.Failed(f"nvidia-smi 550: {reasons['nvidia-smi-550']}")
    program = found["nvidia-smi-550"].path
    [before] = measure.spawned([program])
    [listing] = measure.spawned([program, "-L"], inside=True)
    views = [(name, *_view(program, name, words), bound, times) for name, words, bound, times in VIEWS]
    [after] = measure.spawned([program])
    floor = statistics.mean([before.wall, after.wall])
    slower = slowness(floor, REFERENCE_SMI_MS)
    yield Row("nvidia-smi 550 -L, 8 GPUs", listing.wall / floor, "x", 1.5, f"without a library {floor:.2f} ms")
    for name, own, ours, bound, times in views:
        against = f"{bound} ms on a quick machine; by itself {own.wall:.2f} ms"
        yield Row(f"nvidia-smi 550 {name}, 8 GPUs", ours.wall, "ms", max(bound * slower, times * own.wall), against)
        label = f"nvidia-smi 550 {name}, to a library that takes no time"
        yield Row(label, ours.times, "x", times, f"CPU time {ours.cpu:.2f} of {own.cpu:.2f} ms")


def _view(program: Path, name: str, words: tuple[str, ...]) -> tuple[measure.Taken, measure.Taken]:
    """What a view takes with a library that takes no time, and with ours."""
    library = replay.library(measure.BUILD / "replay")
    recording = library.with_name(f"recording{name.replace(' ', '')}")
    measure.in_node(sys.executable, "-m", "bench.replay", recording, library, program, *words)
    with_none: tuple[str | Path, ...] = (f"REPLAY={recording}", f"LD_LIBRARY_PATH={library.parent}", program, *words)
    own, ours = measure.spawned(with_none, (program, *words), inside=True)
    return own, ours


def waves() -> Iterator[Row]:
    """Staging 8 GPUs from nothing, and again with nothing to do."""
    first, again, with_imex, again_with_imex = wave_times()
    yield Row("stage wave, 8 GPUs", first, "ms", 100)
    yield Row("stage wave, nothing to do", again, "ms", 5)
    yield Row("stage wave, 8 GPUs and 2048 IMEX channels", with_imex, "ms", 300)
    yield Row("stage wave with them, nothing to do", again_with_imex, "ms", 30)


def node() -> Iterator[Row]:
    """A whole node, from the command line."""
    python = measure.seconds(sys.executable, "-c", "")
    against = f"bare Python {python:.2f} s"
    yield Row("simnode run -- true", measure.seconds(measure.SIMNODE, "run", "--", "true"), "s", 0.7, against)
    rss = float(measure.in_node(sys.executable, "-c", AGENT_RSS))
    yield Row("agent, idle, resident memory", rss / 1024, "MiB", 45)


def changes() -> Iterator[Row]:
    """Changing a running node; every value is read back through NVML as soon as the change is answered."""
    words = (sys.executable, "-m", "bench.changes")
    socket, command, xid, bare = map(float, measure.in_node(*words).split())
    yield Row("set through the socket, 99th percentile", socket, "ms", 5, "one GPU of 8")
    yield Row("simnode set, over the bare start, 99th percentile", command, "ms", 50, f"bare Python {bare:.1f} ms")
    yield Row("XID published to 4 waiting processes, 99th percentile", xid, "ms", 10, "until each has it")


GROUPS: tuple[Callable[[], Iterator[Row]], ...] = (library, getters, process, real_nvidia_smi, waves, node, changes)
