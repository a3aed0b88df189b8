"""How one number is taken: programs compiled once, run in a node or outside it, medians of several runs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
SIMNODE = Path(sys.executable).parent / "simnode"


class Failed(Exception):
    """Raised when a measured program does not do its work; the text is what it said."""


def compiled(name: str) -> Path:
    """The benchmark program `name`.c, built with $CC."""
    BUILD.mkdir(parents=True, exist_ok=True)
    output, source = BUILD / name, ROOT / "bench" / f"{name}.c"
    if not output.exists() or output.stat().st_mtime < source.stat().st_mtime:
        command = [os.environ.get("CC") or "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
        subprocess.run([*command, "-o", output, source, "-ldl"], check=True)
    return output


def output(*command: str | Path) -> str:
    """Standard output of a command that has to succeed; 120 s at most."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or "no word").splitlines()[-1]
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}: {said}")
    return done.stdout


def in_node(*command: str | Path, options: tuple[str, ...] = ("--board", "h100")) -> str:
    """Standard output of a command inside `simnode run`."""
    return output(SIMNODE, "run", *options, "--", *command)


@dataclass(frozen=True)
class Taken:
    """Milliseconds from start to end of a program, and of CPU time; `times`: its CPU time to the first program's.

    Medians of several runs. The last is taken of runs that followed each other, and holds on a busy machine, too.
    """

    wall: float
    cpu: float
    times: float


def spawned(*commands: Sequence[str | Path], runs: int = 101, inside: bool = False) -> list[Taken]:
    """What one program takes, or two taking turns, in a node or outside. NAME=VALUE before one is for it alone."""
    words: list[str | Path] = [compiled("spawn"), str(runs), *commands[0]]
    for command in commands[1:]:
        words += ["--", *command]
    lines = (in_node(*words) if inside else output(*words)).splitlines()
    return [Taken(*map(float, line.split())) for line in lines]


def seconds(*command: str | Path, runs: int = 7) -> float:
    """Median seconds of a command from here, Python's own start of it included."""
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        output(*command)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)
