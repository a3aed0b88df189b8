"""Invariant 7: whatever happens to the publisher, a reader sees values and statuses of one publish, without waiting."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simnode.state import Counter, LoadSpec
from tests.nvml.chaos import disturb, seen, start_watching
from tests.nvml.conftest import NATIVE, PUBLISH, Compile
from tests.nvml.nodes import pairs

BOOT = "11111111-2222-3333-4444-555555555555"
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    """Sixteen nodes of one to three GPUs, padded to one size."""
    energy, load = Counter(1000, 68_000.0, 600_000.0), LoadSpec("wave", 0, 100, 0.1, 1)
    encoded = [pairs(4711 + i, 1 + i % 3, energy, load) for i in range(16)]
    size = max(map(len, encoded))
    path = tmp_path / "blobs"
    path.write_bytes(b"".join(one.ljust(size, b"\0") for one in encoded))
    return path


def first_publish(writer: Path, image: Path, blobs: Path) -> None:
    """Readers of the pairs need one publish to look at."""
    process = subprocess.Popen([writer, image, blobs, "16", BOOT])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.kill()
    process.wait()


def test_readers_see_whole_publishes_of_a_writer_that_never_pauses(
    compile_c: Compile, image: Path, blobs: Path, tmp_path: Path
) -> None:
    writer = compile_c(NATIVE / "writer.c", *PUBLISH)
    watch = compile_c(NATIVE / "watch.c")
    first_publish(writer, image, blobs)

    with subprocess.Popen([writer, image, blobs, "16", BOOT]) as process:
        watchers = start_watching(watch, "pairs", image, tmp_path / "floors", 1, processes=1, threads=2)
        reads, tries = seen(watchers)
        process.kill()

    assert reads > 10_000
    assert tries <= 50


def test_readers_see_whole_publishes_of_writers_stopped_and_killed(
    compile_c: Compile, image: Path, blobs: Path, tmp_path: Path
) -> None:
    writer = compile_c(NATIVE / "writer.c", *PUBLISH)
    watch = compile_c(NATIVE / "watch.c")
    first_publish(writer, image, blobs)

    watchers = start_watching(watch, "pairs", image, tmp_path / "floors", 1.5, processes=2, threads=2)
    killed = disturb([[writer, image, blobs, "16", BOOT]], 1.2, seed=1)
    reads, tries = seen(watchers)

    assert killed > 3
    assert reads > 10_000
    assert tries <= 50


@pytest.mark.parametrize(("what", "least"), [("publish", 40), ("event", 5)])
def test_at_every_instruction_of_the_publisher_readers_see_whole_values_and_a_successor_takes_over(
    compile_c: Compile, image: Path, tmp_path: Path, what: str, least: int
) -> None:
    step = compile_c(NATIVE / "step.c", *PUBLISH)
    blobs = tmp_path / "blobs"
    first = pairs(4711, 1, Counter(1000, 68_000.0, 600_000.0), LoadSpec("training", 10, 95, 0.05, 1))
    second = pairs(4712, 1, Counter(1000, 1_000.0, 900_000.0), LoadSpec("wave", 0, 100, 0.03))
    blobs.write_bytes(first + second)

    done = subprocess.run([step, what, image, blobs], capture_output=True, text=True, timeout=50, check=False)

    assert done.returncode == 0, done.stdout
    steps, changes = map(int, done.stdout.split())
    assert steps > changes >= least


def test_the_publisher_is_clean_under_sanitizers(compile_c: Compile, image: Path, blobs: Path) -> None:
    try:
        writer = compile_c(NATIVE / "writer.c", *PUBLISH, flags=SANITIZED)
    except subprocess.CalledProcessError:
        pytest.skip("this compiler has no sanitizers")

    with subprocess.Popen([writer, image, blobs, "16", BOOT], stderr=subprocess.PIPE, text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""
