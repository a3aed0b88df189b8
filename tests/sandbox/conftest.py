"""A runner of `simnode` as root and as an ordinary user, and a guard: nothing of a run may outlive its test."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.running import Runner


@pytest.fixture
def scratch(uid: int) -> Iterator[Path]:
    """An empty directory that belongs to `uid`; pytest's own is closed to the ordinary user."""
    directory = Path(tempfile.mkdtemp(prefix="simnode-test-"))
    if os.geteuid() == 0:
        os.chown(directory, uid, uid)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def runner(uid: int, scratch: Path) -> Iterator[Runner]:
    """Runs simnode in namespaces."""
    yield from _guarded(Runner(uid, scratch, uuid.uuid4().hex))


@pytest.fixture
def refused(uid: int, scratch: Path) -> Iterator[Runner]:
    """Runs simnode where the kernel refuses namespaces."""
    yield from _guarded(Runner(uid, scratch, uuid.uuid4().hex, refused=True))


def _guarded(runner: Runner) -> Iterator[Runner]:
    before = _machine()
    try:
        yield runner
        assert runner.vanished()
    finally:
        runner.clean_up()
    assert _machine() == before


def _machine() -> dict[str, object]:
    """What a run could have touched: mounts, device nodes, /proc/driver, and the directories it stages over."""
    nodes = {path.name: (path.lstat().st_mode, path.lstat().st_rdev) for path in Path("/dev").iterdir()}
    mounts = [line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    places = ("/usr/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64")
    names = [depth + name for name in ("*nvidia*", "simnode") for depth in ("", "*/")]
    staged = [path for place in places for name in names for path in Path(place).glob(name)]
    driver = sorted(Path("/proc/driver").iterdir())
    return {"dev": nodes, "mounts": mounts, "driver": driver, "staged": staged}
