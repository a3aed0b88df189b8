"""What stands after a converge, what is repaired, and what is left alone."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simnode.host import File, LiveFile, Surface, Tree
from tests.host.cases import IS_ROOT, SURFACES, any_surface, refused, stands
from tests.host.scene import host, picture, recorded


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


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


@pytest.mark.parametrize("kind", [kind for kind in SURFACES if kind != "directory"])
def test_a_copy_that_somebody_put_in_the_place_of_ours_is_theirs(root: Path, kind: str) -> None:
    surface = SURFACES[kind]
    host(root).converge("gpu", Tree([surface]))
    (root / "d/it").rename(root / "d/kept-so-that-its-inode-is-not-free")
    host(root).converge("foreign", Tree([surface]))
    host(root).converge("gpu", Tree.empty)
    assert stands(root, surface)


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
