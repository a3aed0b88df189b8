"""A runner of `simnode` as root and as an ordinary user, and a guard: nothing of a run may outlive its test."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import memory
from tests.sandbox.running import Runner, Shell

PLACES = {
    path.resolve() for path in map(Path, ("/usr/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64")) if path.is_dir()
}


@contextmanager
def directory_of(uid: int, place: str | None = None) -> Iterator[Path]:
    """An empty directory that belongs to `uid`; pytest's own is closed to the ordinary user."""
    directory = Path(tempfile.mkdtemp(prefix="simnode-test-", dir=place))
    if os.geteuid() == 0:
        os.chown(directory, uid, uid)
    yield directory
    shutil.rmtree(directory)


@contextmanager
def guarded(uid: int, scratch: Path, *, refused: bool = False) -> Iterator[Runner]:
    """A runner; in the end nothing of its runs may be left."""
    runner = Runner(uid, scratch, uuid.uuid4().hex, refused=refused)
    before = _machine()
    try:
        yield runner
        assert runner.vanished()
    finally:
        runner.clean_up()
    assert _machine() == before


@contextmanager
def refusing(uid: int) -> Iterator[Runner]:
    """A runner without namespaces, whose nodes then are in no file system of their own."""
    with directory_of(uid, memory.place()) as scratch, guarded(uid, scratch, refused=True) as runner:
        yield runner


@pytest.fixture
def scratch(uid: int) -> Iterator[Path]:
    """A directory of the user's."""
    with directory_of(uid) as directory:
        yield directory


@pytest.fixture
def runner(uid: int, scratch: Path) -> Iterator[Runner]:
    """Runs simnode in namespaces."""
    with guarded(uid, scratch) as runner:
        yield runner


@pytest.fixture
def refused(uid: int) -> Iterator[Runner]:
    """Runs simnode where the kernel refuses namespaces."""
    with refusing(uid) as runner:
        yield runner


@pytest.fixture(scope="module")
def sharing(uid: int) -> Iterator[Runner]:
    """Runs simnode in namespaces: for a node that the tests of a module share."""
    with directory_of(uid) as scratch, guarded(uid, scratch) as runner:
        yield runner


@pytest.fixture(scope="module")
def node(sharing: Runner) -> Iterator[Shell]:
    """A node in namespaces that the tests of a module share."""
    with sharing.shell("--board", "t4", "--driver-version", "550.163.01") as shell:
        yield shell


def _machine() -> dict[str, object]:
    """What a run could have touched: mounts, device nodes, /proc/driver, and the directories it stages over."""
    nodes = {path.name: (path.lstat().st_mode, path.lstat().st_rdev) for path in Path("/dev").iterdir()}
    mounts = [line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    driver = sorted(Path("/proc/driver").iterdir())
    return {"dev": nodes, "mounts": mounts, "driver": driver, "staged": _staged()}


def _staged() -> list[str]:
    """What has a name of ours in those directories and in the ones below them."""
    found = []
    for place in filter(Path.is_dir, PLACES):
        with os.scandir(place) as entries:
            for entry in entries:
                names = [".", *os.listdir(entry)] if entry.is_dir() else ["."]  # noqa: PTH208  read before every test
                paths = (os.path.normpath(f"{entry.path}/{name}") for name in names)
                found += [path for path in paths if _ours(path.rpartition("/")[2])]
    return sorted(found)


def _ours(name: str) -> bool:
    return "nvidia" in name or name == "simnode"
