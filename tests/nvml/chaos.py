"""Writers that are stopped and killed at random instants while readers watch."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path


def disturb(writers: Sequence[list[str | Path]], seconds: float, seed: int) -> int:
    """Run one of `writers` after another, each for a few milliseconds at most; how many were killed."""
    chance = random.Random(seed)
    deadline = time.monotonic() + seconds
    killed = 0
    while time.monotonic() < deadline:
        with subprocess.Popen(chance.choice(writers)) as writer:
            for _ in range(chance.randrange(3)):
                time.sleep(chance.uniform(0, 0.015))
                writer.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0, 0.02))
                if chance.random() < 0.5:
                    break
                writer.send_signal(signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.005))
            assert writer.poll() is None, f"a writer ended by itself: {writer.returncode}"
            writer.kill()
        killed += 1
    return killed


def start_watching(
    watch: Path, mode: str, image: Path, floors: Path, seconds: float, *, processes: int, threads: int
) -> list[subprocess.Popen[str]]:
    """Readers of native/watch.c."""
    if not floors.exists():
        floors.write_bytes(bytes(64))
    command: list[str | Path] = [watch, mode, image, floors, str(int(seconds * 1000)), str(threads)]
    return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]


def seen(watchers: Sequence[subprocess.Popen[str]]) -> tuple[int, int]:
    """How often all of them read, and the most tries that one read took. Fails with what any of them saw go wrong."""
    reads = most = 0
    for watcher in watchers:
        told, _ = watcher.communicate(timeout=30)
        assert watcher.returncode == 0, told
        count, tries = map(int, told.split())
        reads, most = reads + count, max(most, tries)
    return reads, most
