"""What stands after a converge, and what is left alone."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from simnode.host import (
    CharacterDevice,
    ConvergeError,
    Directory,
    File,
    Link,
    LiveFile,
    OwnerBusyError,
    Surface,
    SurfaceError,
    Tree,
    syscalls,
)
from tests.host.scene import LATER_BOOT, around_calls, failing, host, picture, recorded

IS_ROOT = os.geteuid() == 0
FOR_ANYBODY: dict[str, Surface] = {
    "file": File("d/it", b"content", 0o640),
    "live file": LiveFile("d/it", 4096, 0o640),
    "link": Link("d/it", "../elsewhere"),
    "directory": Directory("d/it", 0o750),
}
FOR_ROOT: dict[str, Surface] = {"character device": CharacterDevice("d/it", 195, 3, 0o660)}
SURFACES = FOR_ANYBODY | FOR_ROOT if IS_ROOT else FOR_ANYBODY

any_surface = pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES.keys())


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def refused(root: Path, tree: Tree, owner: str = "gpu") -> tuple[SurfaceError, ...]:
    with pytest.raises(ConvergeError) as caught:
        host(root).converge(owner, tree)
    assert "\n" not in str(caught.value)
    return caught.value.errors


def stands(root: Path, surface: Surface) -> bool:
    path = root / surface.path
    found = path.lstat()
    match surface:
        case File():
            right = stat.S_ISREG(found.st_mode) and path.read_bytes() == surface.content
        case LiveFile():
            right = stat.S_ISREG(found.st_mode) and found.st_size >= surface.size
        case Link():
            return path.is_symlink() and str(path.readlink()) == surface.target
        case CharacterDevice():
            right = stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(surface.major, surface.minor)
        case _:
            right = stat.S_ISDIR(found.st_mode)
    return right and stat.S_IMODE(found.st_mode) == surface.mode


@any_surface
@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_a_surface_stands_with_its_mode_whatever_the_umask(root: Path, surface: Surface, mask: int) -> None:
    with umask(mask):
        host(root).converge("gpu", Tree([surface]))
    assert stands(root, surface)
    assert stat.S_IMODE((root / "d").stat().st_mode) == 0o755


@any_surface
def test_the_empty_tree_takes_away_everything_and_every_trace(root: Path, surface: Surface) -> None:
    (root / "before").mkdir()
    before = picture(root)
    host(root).converge("gpu", Tree([surface]))
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == before


@any_surface
def test_a_converge_with_nothing_to_do_changes_nothing(root: Path, surface: Surface) -> None:
    host(root).converge("gpu", Tree([surface]))
    before = picture(root)
    assert not host(root).plan("gpu", Tree([surface]))
    with recorded() as calls:
        host(root).converge("gpu", Tree([surface]))
    assert calls == []
    assert picture(root) == before


@any_surface
def test_what_was_there_before_and_is_the_same_is_not_ours(root: Path, surface: Surface) -> None:
    (root / "d").mkdir()
    host(root).converge("maker", Tree([surface]))
    shutil.rmtree(root / "state")
    before = picture(root)
    host(root).converge("gpu", Tree([surface]))
    assert picture(root, records=False) == before
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == before


def make_file(path: Path) -> None:
    path.write_bytes(b"foreign")


OCCUPANTS: dict[str, Callable[[Path], None]] = {
    "file": make_file,
    "link": lambda path: path.symlink_to("nowhere"),
    "fifo": os.mkfifo,
    "directory": lambda path: path.mkdir(0o700),
}


@any_surface
@pytest.mark.parametrize("occupy", OCCUPANTS.values(), ids=OCCUPANTS.keys())
def test_a_foreign_object_in_the_way_is_an_error_and_stays(
    root: Path, surface: Surface, occupy: Callable[[Path], None]
) -> None:
    (root / "d").mkdir()
    occupy(root / "d/it")
    (root / "d/it").exists()
    before = picture(root)
    if isinstance(surface, LiveFile) and stat.S_ISREG((root / "d/it").lstat().st_mode):
        surface = LiveFile(surface.path, 1 << 20)
    tree = Tree([surface, File("d/other", b"")])
    assert host(root).plan("gpu", tree)
    (error,) = refused(root, tree)
    assert error.path == "d/it"
    assert error.kind == surface.kind
    assert (root / "d/other").exists()
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == before


def remove(path: Path) -> None:
    path.unlink()


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def edit_in_place(path: Path) -> None:
    path.write_bytes(b"CONTENT")


def to_other_device(path: Path) -> None:
    path.unlink()
    os.mknod(path, 0o020660, os.makedev(1, 3))


def other_content(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"other")


DEVICE: list[tuple[str, Callable[[Path], object]]] = [
    ("character device", remove),
    ("character device", to_directory),
    ("character device", to_fifo),
    ("character device", to_other_device),
    ("character device", lambda path: path.chmod(0o600)),
]
DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("file", remove),
    ("file", to_directory),
    ("file", to_link),
    ("file", to_fifo),
    ("file", edit_in_place),
    ("file", other_content),
    ("file", lambda path: path.chmod(0o600)),
    ("live file", remove),
    ("live file", to_directory),
    ("live file", to_link),
    ("live file", other_content),
    ("live file", lambda path: path.chmod(0o600)),
    ("link", remove),
    ("link", to_directory),
    ("link", other_content),
    ("link", to_link),
    ("directory", lambda path: path.rmdir()),
    ("directory", lambda path: path.chmod(0o700)),
    *(DEVICE if IS_ROOT else []),
]


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_whatever_differs_from_what_we_made_is_repaired(
    root: Path, kind: str, damage: Callable[[Path], object]
) -> None:
    surface = SURFACES[kind]
    host(root).converge("gpu", Tree([surface]))
    damage(root / "d/it")
    assert host(root).plan("gpu", Tree([surface]))
    host(root).converge("gpu", Tree([surface]))
    assert stands(root, surface)
    assert not host(root).plan("gpu", Tree([surface]))
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


@pytest.mark.parametrize(
    ("surface", "meddle", "stays_same"),
    [
        (SURFACES["live file"], lambda path: path.chmod(0o600), True),
        (SURFACES["live file"], lambda path: path.write_bytes(b"x" * 9000), True),
        (SURFACES["live file"], lambda path: os.truncate(path, 10), True),
        (SURFACES["directory"], lambda path: path.chmod(0o700), True),
        (SURFACES["file"], lambda path: path.chmod(0o600), False),
        (SURFACES["file"], edit_in_place, False),
    ],
    ids=["live-mode", "live-written", "live-truncated", "directory-mode", "file-mode", "file-content"],
)
def test_a_repair_keeps_the_inode_of_what_others_hold_and_never_that_of_a_file(
    root: Path, surface: Surface, meddle: Callable[[Path], object], stays_same: bool
) -> None:
    host(root).converge("gpu", Tree([surface]))
    held = os.open(root / "d/it", os.O_PATH)
    try:
        meddle(root / "d/it")
        host(root).converge("gpu", Tree([surface]))
        assert os.path.samestat(os.fstat(held), (root / "d/it").stat()) == stays_same
    finally:
        os.close(held)


def test_a_live_file_is_filled_by_others_and_grows_in_place(root: Path) -> None:
    host(root).converge("gpu", Tree([LiveFile("image", 8)]))
    assert (root / "image").read_bytes() == bytes(8)
    (root / "image").write_bytes(b"measured")
    host(root).converge("gpu", Tree([LiveFile("image", 16)]))
    assert (root / "image").read_bytes() == b"measured" + bytes(8)
    host(root).converge("gpu", Tree([LiveFile("image", 4)]))
    assert (root / "image").read_bytes() == b"measured" + bytes(8)
    assert not host(root).plan("gpu", Tree([LiveFile("image", 4)]))


KINDS = list(SURFACES.values())


@pytest.mark.parametrize("new", KINDS, ids=SURFACES.keys())
@pytest.mark.parametrize("old", KINDS, ids=SURFACES.keys())
def test_a_path_can_change_its_kind(root: Path, old: Surface, new: Surface) -> None:
    host(root).converge("gpu", Tree([old]))
    host(root).converge("gpu", Tree([new]))
    assert stands(root, new)
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


@pytest.mark.parametrize("below", KINDS, ids=SURFACES.keys())
def test_a_file_becomes_a_directory_and_back(root: Path, below: Surface) -> None:
    flat, deep = Tree([File("d", b"flat")]), Tree([below])
    for tree in (flat, deep, flat):
        host(root).converge("gpu", tree)
        assert all(stands(root, surface) for surface in tree)
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


@any_surface
def test_only_what_is_still_the_object_that_we_made_is_removed(root: Path, surface: Surface) -> None:
    host(root).converge("gpu", Tree([surface]))
    path = root / "d/it"
    path.rmdir() if surface.kind == "directory" else path.unlink()
    (root / "d/spare").write_bytes(b"takes the inode that became free")
    path.write_bytes(b"foreign")
    before = picture(root, records=False)
    host(root).converge("gpu", Tree.empty)
    assert picture(root, records=False) == before
    shutil.rmtree(root / "d")
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_a_file_of_ours_that_somebody_rewrote_is_left_to_them(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a", b"ours")]))
    (root / "a").write_bytes(b"mine")
    host(root).converge("gpu", Tree.empty)
    assert (root / "a").read_bytes() == b"mine"


def test_a_file_of_ours_that_was_only_touched_is_removed(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a", b"ours")]))
    (root / "a").chmod(0o600)
    os.utime(root / "a", (1, 1))
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


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


def test_a_link_planted_over_our_directory_never_leads_a_removal_out(root: Path, tmp_path: Path) -> None:
    host(root).converge("gpu", Tree([File("d/f", b"x")]))
    (root / "d").rename(tmp_path / "outside")
    (root / "d").symlink_to(tmp_path / "outside")
    before = picture(tmp_path / "outside")
    host(root).converge("gpu", Tree.empty)
    assert picture(tmp_path / "outside") == before
    assert (root / "d").is_symlink()


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
