"""An engine that remembers that all stood sees every change that one without any memory sees."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simnode.host import Directory, File, Link, LiveFile, Tree, ctimes, memory, records
from simnode.host.plan import Drawing
from tests.host.scene import host

A_TICK = 0.05
TREE = Tree(
    [
        File("a/file", b"content"),
        File("a/other", b"content"),
        File("own", b"was here before us"),
        Link("a/link", "file"),
        LiveFile("b/live", 64),
        Directory("c", 0o700),
        Directory("d"),
    ]
)


def _alter(root: Path) -> None:
    (root / "a/file").write_bytes(b"CONTENT")


def _alter_and_set_back_the_time(root: Path) -> None:
    before = (root / "a/file").stat()
    _alter(root)
    os.utime(root / "a/file", ns=(before.st_atime_ns, before.st_mtime_ns))


def _relink(root: Path) -> None:
    (root / "a/link").unlink()
    (root / "a/link").symlink_to("else")


def _link_instead_of_a_directory(root: Path) -> None:
    (root / "a").rename(root / "moved")
    (root / "a").symlink_to("moved")


def _copy_in_the_place_of_a_directory(root: Path) -> None:
    (root / "a").rename(root / "moved")
    (root / "a").mkdir()


def _another_owner_needs_a_directory(root: Path) -> None:
    host(root).converge("cri", Tree([File("d/e/f", b"")]))


DRIFTS = (
    _alter,
    _alter_and_set_back_the_time,
    _relink,
    _link_instead_of_a_directory,
    _copy_in_the_place_of_a_directory,
    lambda root: (root / "own").write_bytes(b"and is not ours"),
    lambda root: (root / "a/file").unlink(),
    lambda root: (root / "a/file").chmod(0o600),
    lambda root: (root / "a/other").rename(root / "a/file"),
    lambda root: os.truncate(root / "b/live", 8),
    lambda root: (root / "c").chmod(0o755),
    lambda root: (root / "d").rmdir(),
    lambda root: (root / "a/link").unlink(),
    lambda root: (root / "state/parents.json").unlink(),
)
NAMES = [getattr(drift, "__name__", "").strip("_") for drift in DRIFTS[:5]] + [
    "what stood before us",
    "gone",
    "mode",
    "another of ours",
    "cut off",
    "mode of a directory",
    "directory gone",
    "link gone",
    "ledger gone",
]


@pytest.mark.parametrize("drift", DRIFTS, ids=NAMES)
def test_no_change_is_overlooked(root: Path, drift: Callable[[Path], None]) -> None:
    (root / "own").write_bytes(b"was here before us")
    (root / "own").chmod(0o644)
    one = host(root)
    one.converge("gpu", TREE)
    time.sleep(A_TICK)
    assert not one.plan("gpu", TREE)
    assert not one.plan("gpu", TREE)
    drift(root)
    plan = one.plan("gpu", TREE)
    assert plan
    assert str(plan) == str(host(root).plan("gpu", TREE))


@pytest.fixture
def whole_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose ctimes are whole hours, and a kernel whose ticks are."""
    hour = 3600 * 10**9

    def seen(found: os.stat_result) -> tuple[int, int, int]:
        return found.st_dev, found.st_ino, found.st_ctime_ns // hour * hour

    monkeypatch.setattr(ctimes, "_COARSE_TICK_NS", hour)
    monkeypatch.setattr(memory, "stamp", seen)
    monkeypatch.setattr(records, "stamp", seen)


@pytest.mark.usefixtures("whole_hours")
def test_what_is_altered_in_the_tick_of_the_clock_in_which_it_was_made_is_seen(root: Path) -> None:
    one = host(root)
    one.converge("gpu", TREE)
    assert not one.plan("gpu", TREE)
    _alter(root)
    assert [step.path for step in one.plan("gpu", TREE)] == ["a/file"]


@pytest.mark.usefixtures("whole_hours")
def test_a_record_that_was_written_again_in_the_same_tick_is_read_again(root: Path) -> None:
    """In place, so that nothing but its content tells; the engine itself gets the same inode again on some systems."""
    one = host(root)
    one.converge("gpu", TREE)
    assert not one.plan("gpu", TREE)
    ledger = root / "state/parents.json"
    ledger.write_bytes(ledger.read_bytes().replace(b'"a":', b'"z":'))
    assert str(one.plan("gpu", TREE)) == str(host(root).plan("gpu", TREE)) != ""


def test_what_was_found_standing_is_not_compared_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = host(root)
    one.converge("gpu", TREE)
    time.sleep(A_TICK)
    assert not one.plan("gpu", TREE)
    monkeypatch.setattr(Drawing, "plan", lambda _: pytest.fail("was drawn again"))
    assert not one.plan("gpu", TREE)


def test_what_another_owner_does_changes_nothing(root: Path) -> None:
    one = host(root)
    one.converge("gpu", TREE)
    assert not one.plan("gpu", TREE)
    _another_owner_needs_a_directory(root)
    assert not one.plan("gpu", TREE)


def test_a_directory_that_nobody_needs_goes_once_it_is_empty_whatever_is_remembered(root: Path) -> None:
    one = host(root)
    one.converge("gpu", Tree([*TREE, File("old/f", b"")]))
    (root / "old/foreign").write_bytes(b"")
    one.converge("gpu", TREE)
    assert not one.plan("gpu", TREE)
    (root / "old/foreign").unlink()
    assert [step.path for step in one.plan("gpu", TREE)] == ["old"]


def test_another_tree_is_planned_whatever_is_remembered(root: Path) -> None:
    one = host(root)
    one.converge("gpu", TREE)
    assert not one.plan("gpu", TREE)
    assert [step.path for step in one.plan("gpu", Tree([*TREE, File("new", b"")]))] == ["new"]
    assert not one.plan("gpu", Tree(TREE))
