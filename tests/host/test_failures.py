"""In which order things happen, and what a failure takes with it."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simnode.host import Directory, File, Link, LiveFile, Tree, syscalls
from tests.host.cases import refused, stands
from tests.host.scene import around_calls, failing, host, picture


def test_new_things_appear_before_old_go_and_links_after_what_they_lead_to(root: Path) -> None:
    def library(version: str) -> Tree:
        return Tree(
            [
                File(f"lib/z.so.{version}", version.encode()),
                Link("lib/a.so.1", f"z.so.{version}"),
                Link("lib/0.so", "a.so.1"),
                Link(f"lib/b-{version}", f"z.so.{version}"),
            ]
        )

    def never_dangling(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        result = call(*arguments)
        for link in (root / "lib").glob("[0ab]*") if (root / "lib").exists() else ():
            assert link.exists(), f"{link.name} dangles after {name} {arguments}"
        return result

    with around_calls(never_dangling):
        for tree in (library("1"), library("2"), Tree.empty):
            host(root).converge("gpu", tree)
    assert picture(root) == {}


def test_a_failure_takes_with_it_only_what_depends_on_it(root: Path) -> None:
    (root / "lost").write_bytes(b"a file where a directory must be")
    (root / "taken").write_bytes(b"foreign")
    tree = Tree(
        [
            File("lost/a", b""),
            File("lost/b/c", b""),
            File("taken", b"ours"),
            Link("to-taken", "taken"),
            Link("to-link", "to-taken"),
            Link("to-free", "free"),
            File("free", b""),
        ]
    )
    errors = refused(root, tree)
    assert [error.path for error in errors] == ["lost", "taken", "to-link", "to-taken"]
    assert sorted(picture(root, records=False)) == ["free", "lost", "taken", "to-free"]


def test_what_a_link_that_could_not_move_leads_to_stays(root: Path) -> None:
    one = Tree([File("lib/1", b"1"), Link("lib/so", "1"), File("old", b"")])
    two = Tree([File("lib/2", b"2"), Link("lib/so", "2")])
    host(root).converge("gpu", one)
    with failing(errno.ENOSPC, when=lambda name, _: name == "make_link"):
        (error,) = refused(root, two)
    assert (error.path, error.kind, error.errno) == ("lib/so", "link", errno.ENOSPC)
    assert (root / "lib/so").read_bytes() == b"1"
    assert not (root / "old").exists()
    host(root).converge("gpu", two)
    assert sorted(picture(root, records=False)) == ["lib", "lib/2", "lib/so"]


def test_what_a_link_that_could_not_go_leads_to_stays(root: Path) -> None:
    host(root).converge("gpu", Tree([File("1", b"1"), Link("so", "1"), Link("so.so", "so"), File("other", b"")]))
    with failing(errno.EPERM, when=lambda name, arguments: name == "remove" and arguments[1] == "so.so"):
        (error,) = refused(root, Tree.empty)
    assert error.path == "so.so"
    assert sorted(picture(root, records=False)) == ["1", "so", "so.so"]
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


@pytest.mark.parametrize(
    "name", ["create", "write", "set_mode", "rename_new", "make_directory", "make_link", "allocate"]
)
def test_a_call_that_fails_once_is_an_error_and_the_next_converge_repairs(root: Path, name: str) -> None:
    tree = Tree([File("a/f", b"x"), LiveFile("a/l", 8), Link("a/k", "f"), Directory("b")])
    with failing(errno.ENOSPC, when=lambda called, _: called == name):
        assert all(error.errno in (errno.ENOSPC, None) for error in refused(root, tree))
    host(root).converge("gpu", tree)
    assert not host(root).plan("gpu", tree)
    assert all(stands(root, surface) for surface in tree)
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_a_full_disk_does_not_keep_things_from_going(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"x"), File("b/f", b"x")]))
    with failing(errno.ENOSPC, when=lambda name, _: name == "create"):
        errors = refused(root, Tree([File("b/f", b"x"), File("c", b"x")]))
    assert {error.path for error in errors} == {"state/journal/gpu.json", "state/parents.json"}
    assert not (root / "a/f").exists()
    with failing(errno.ENOSPC, when=lambda name, _: name == "create"):
        host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_what_was_prepared_goes_when_putting_it_there_fails(root: Path) -> None:
    with failing(errno.EIO, when=lambda name, arguments: name == "rename_new" and arguments[2] == "a"):
        refused(root, Tree([File("a", b"x")]))
    assert picture(root, records=False) == {}


def test_something_that_appears_meanwhile_is_not_overwritten(root: Path) -> None:
    def intrude(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if name == "rename_new":
            (root / "a").write_bytes(b"foreign")
        return call(*arguments)

    with around_calls(intrude):
        (error,) = refused(root, Tree([File("a", b"x")]))
    assert error.errno == errno.EEXIST
    assert len(refused(root, Tree([File("a", b"x")]))) == 1
    host(root).converge("gpu", Tree.empty)
    assert [path.read_bytes() for path in root.iterdir()] == [b"foreign"]


def test_a_rename_that_must_not_replace_does_without_the_kernel_flag(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Old:
        @staticmethod
        def renameat2(*_: object) -> int:

            ctypes.set_errno(errno.EINVAL)
            return -1

    monkeypatch.setattr(syscalls, "_LIBC", Old)
    host(root).converge("gpu", Tree([File("a", b"x")]))
    assert (root / "a").read_bytes() == b"x"
    (root / "b").write_bytes(b"")
    directory = os.open(root, os.O_PATH)
    try:
        with pytest.raises(FileExistsError):
            syscalls.rename_new(directory, "a", "b")
    finally:
        os.close(directory)


@pytest.mark.parametrize("planted", ["d", "d/e"])
def test_a_planted_link_never_leads_out(root: Path, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    (outside / "e").mkdir(parents=True)
    tree = Tree([File("d/e/f", b"x")])
    (root / planted).parent.mkdir(exist_ok=True)
    (root / planted).symlink_to(outside)
    (error,) = refused(root, tree)
    assert error.path == planted
    assert sorted(picture(outside)) == ["e"]


def test_a_link_planted_over_our_directory_never_leads_a_removal_out(root: Path) -> None:
    host(root).converge("gpu", Tree([File("d/f", b"x")]))
    (root / "d").rename(root.parent / "outside")
    (root / "d").symlink_to(root.parent / "outside")
    before = picture(root.parent / "outside")
    host(root).converge("gpu", Tree.empty)
    assert picture(root.parent / "outside") == before
    assert (root / "d").is_symlink()
