"""The journal after a reboot and after damage, and who may converge when."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simnode.host import ConvergeError, File, Link, LiveFile, OwnerBusyError, Surface, Tree
from tests.host.cases import any_surface, refused, stands
from tests.host.scene import LATER_BOOT, around_calls, host, picture, recorded


@any_surface
def test_after_a_reboot_contents_decide(root: Path, surface: Surface) -> None:
    host(root).converge("gpu", Tree([surface]))
    moved = root.with_name("restored")
    shutil.move(root, moved)
    if surface.kind == "character device":
        shutil.copytree(moved, root, symlinks=True, ignore=lambda *_: ["it"])
        os.mknod(root / "d/it", 0o020660, os.makedev(195, 3))
    else:
        shutil.copytree(moved, root, symlinks=True)
    later = host(root, LATER_BOOT)
    later.converge("gpu", Tree([surface, File("d/second", b"")]))
    assert stands(root, surface)
    assert not later.plan("gpu", Tree([surface, File("d/second", b"")]))
    host(root, LATER_BOOT).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_after_a_reboot_other_content_is_left_alone(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a", b"ours"), Link("b", "x")]))
    (root / "a").write_bytes(b"else")
    (root / "b").unlink()
    (root / "b").symlink_to("y")
    host(root, LATER_BOOT).converge("gpu", Tree.empty)
    assert sorted(picture(root)) == ["a", "b"]


DAMAGED = {
    "empty": b"",
    "not-json": b"{",
    "not-text": b"\xff\xfe",
    "list": b"[]",
    "other-version": json.dumps({"version": 99, "boot_id": "b", "entries": {}}).encode(),
    "unsafe-path": json.dumps(
        {"version": 1, "boot_id": "b", "entries": {"../x": ["link", 0, "y", [1, 2], None, False]}}
    ).encode(),
    "unknown-kind": json.dumps(
        {"version": 1, "boot_id": "b", "entries": {"x": ["moon", 0, "y", [1, 2], None, False]}}
    ).encode(),
    "short-identity": json.dumps(
        {"version": 1, "boot_id": "b", "entries": {"x": ["link", 0, "y", [], None, False]}}
    ).encode(),
    "size-that-is-none": json.dumps(
        {"version": 1, "boot_id": "b", "entries": {"x": ["live file", 0, "y", [1, 2, 3], None, False]}}
    ).encode(),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_journal_is_set_aside_and_never_fatal(root: Path, content: bytes) -> None:
    tree = Tree([File("a", b"x")])
    host(root).converge("gpu", tree)
    journal = root / "state/journal/gpu.json"
    journal.write_bytes(content)
    host(root).plan("gpu", tree)
    host(root).converge("gpu", tree)
    assert journal.with_suffix(".damaged").read_bytes() == content
    host(root).converge("gpu", Tree([File("a", b"x"), File("b", b"y")]))
    host(root).converge("gpu", Tree.empty)
    assert sorted(picture(root, records=False)) == ["a"]


def test_a_journal_that_is_no_file_is_set_aside(root: Path) -> None:
    (root / "state/journal/gpu.json").mkdir(parents=True)
    host(root).converge("gpu", Tree([File("a", b"x")]))
    host(root).converge("gpu", Tree.empty)
    assert sorted(picture(root)) == ["state", "state/journal", "state/journal/gpu.damaged"]


def test_an_owner_is_never_converged_twice_at_once(root: Path) -> None:
    engine = host(root)
    inside, go_on = threading.Event(), threading.Event()

    def wait(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if name == "make_link":
            inside.set()
            assert go_on.wait(10)
        return call(*arguments)

    with around_calls(wait):
        thread = threading.Thread(target=engine.converge, args=("gpu", Tree([Link("a", "b")])))
        thread.start()
        assert inside.wait(10)
        with pytest.raises(OwnerBusyError, match="gpu"):
            engine.converge("gpu", Tree.empty)
        engine.converge("pci", Tree([File("b", b"")]))
        go_on.set()
        thread.join()
    engine.converge("gpu", Tree.empty)
    assert sorted(picture(root, records=False)) == ["b"]


def test_an_owner_is_free_again_after_a_failure(root: Path) -> None:
    engine = host(root)
    (root / "a").write_bytes(b"foreign")
    for _ in range(2):
        with pytest.raises(ConvergeError):
            engine.converge("gpu", Tree([File("a", b"")]))


@pytest.mark.parametrize("owner", ["", "../gpu", "a/b", "GPU", ".gpu", "x" * 65, "a b"])
def test_an_owner_that_is_no_name_is_refused(root: Path, owner: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        host(root).converge(owner, Tree.empty)


def test_a_root_that_is_not_there_is_an_error(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        host(root / "nowhere").converge("gpu", Tree.empty)


def test_temporary_names_end_like_nothing_that_anybody_loads(root: Path) -> None:
    with recorded() as calls:
        host(root).converge("gpu.json", Tree([File("a", b""), Link("b", "a"), LiveFile("c", 1)]))
    made = [arguments[1] for name, arguments in calls if name in ("create", "make_link")]
    assert len(made) >= 5
    assert all(name.startswith(".simnode-") and name.endswith("~") for name in made)


def test_no_descriptor_is_left_open(root: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = open_descriptors()
    tree = Tree(File(f"{i}/{j}/f", b"x") for i in range(20) for j in range(10))
    host(root).converge("gpu", tree)
    (root / "1/1/f").unlink()
    (root / "1/1/f").mkdir()
    (root / "1/1/f/x").mkdir()
    refused(root, tree)
    assert open_descriptors() == before
    host(root).plan("gpu", tree)
    assert open_descriptors() == before
