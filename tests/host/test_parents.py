"""Directories appear with the first who needs them and go with the last."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from simnode.host import ConvergeError, Directory, File, Link, Tree
from tests.host.scene import LATER_BOOT, failing, host, picture


def directories(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir() and "state" not in path.parts
    )


def test_a_directory_that_two_owners_need_goes_with_the_last(root: Path) -> None:
    engine = host(root)
    engine.converge("gpu", Tree([File("a/b/gpu", b"")]))
    engine.converge("pci", Tree([File("a/b/c/pci", b"")]))
    engine.converge("gpu", Tree.empty)
    assert directories(root) == ["a", "a/b", "a/b/c"]
    engine.converge("pci", Tree.empty)
    assert picture(root) == {}


def test_a_directory_that_was_there_before_stays(root: Path) -> None:
    (root / "a").mkdir()
    host(root).converge("gpu", Tree([File("a/b/f", b"")]))
    host(root).converge("gpu", Tree.empty)
    assert directories(root) == ["a"]


def test_a_directory_in_which_somebody_put_something_stays_until_it_is_empty(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"")]))
    (root / "a/foreign").write_bytes(b"")
    host(root).converge("gpu", Tree.empty)
    assert directories(root) == ["a"]
    assert not host(root).plan("gpu", Tree.empty)
    (root / "a/foreign").unlink()
    assert [step.action for step in host(root).plan("pci", Tree.empty)] == ["prune"]
    host(root).converge("pci", Tree.empty)
    assert picture(root) == {}


def test_a_directory_that_somebody_made_anew_is_theirs(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"")]))
    made = (root / "a").stat().st_ino
    shutil.rmtree(root / "a")
    (root / "a").mkdir()
    if (root / "a").stat().st_ino == made:  # a file system may give a freed inode to the next that asks
        (root / "a").rename(root / "spare")
        (root / "a").mkdir()
    host(root).converge("gpu", Tree.empty)
    assert "a" in directories(root)


def test_a_parent_that_vanished_comes_back(root: Path) -> None:
    tree = Tree([File("a/b/f", b"x"), Directory("c")])
    host(root).converge("gpu", tree)
    shutil.rmtree(root / "a")
    (root / "c").rmdir()
    host(root).converge("gpu", tree)
    assert (root / "a/b/f").read_bytes() == b"x"
    assert directories(root) == ["a", "a/b", "c"]
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_an_explicit_directory_keeps_its_inode_while_anybody_wants_it(root: Path) -> None:
    engine = host(root)
    engine.converge("pci", Tree([File("dev/pci", b"")]))
    inode = (root / "dev").stat().st_ino
    engine.converge("gpu", Tree([Directory("dev")]))
    engine.converge("pci", Tree.empty)
    engine.converge("gpu", Tree([Directory("dev"), File("dev/gpu", b"")]))
    engine.converge("gpu", Tree([Directory("dev", 0o750)]))
    assert (root / "dev").stat().st_ino == inode
    assert (root / "dev").stat().st_mode & 0o7777 == 0o750
    engine.converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_an_explicit_directory_of_somebody_else_is_taken_as_it_is_or_refused(root: Path) -> None:
    (root / "a").mkdir(mode=0o700)
    with pytest.raises(ConvergeError, match="mode 0700, not 0755") as caught:
        host(root).converge("gpu", Tree([Directory("a"), File("a/f", b"")]))
    assert [error.path for error in caught.value.errors] == ["a"]
    assert (root / "a/f").exists()
    host(root).converge("gpu", Tree([Directory("a", 0o700)]))
    host(root).converge("gpu", Tree.empty)
    assert directories(root) == ["a"]


def test_a_directory_another_owner_needs_does_not_give_way_to_a_file(root: Path) -> None:
    engine = host(root)
    engine.converge("pci", Tree([Directory("a")]))
    engine.converge("gpu", Tree([File("a/b/f", b"")]))
    with pytest.raises(ConvergeError, match=r"^gpu: a: occupied by a directory"):
        engine.converge("gpu", Tree([File("a", b"")]))
    assert directories(root) == ["a"]


def test_a_directory_of_ours_with_foreign_things_in_it_does_not_give_way(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"")]))
    (root / "a/foreign").write_bytes(b"")
    with pytest.raises(ConvergeError) as caught:
        host(root).converge("gpu", Tree([File("a", b""), File("b", b"")]))
    assert [(error.path, error.errno) for error in caught.value.errors] == [("a", errno.EEXIST)]
    assert sorted(picture(root, records=False)) == ["a", "a/foreign", "b"]


def test_one_directory_that_cannot_be_made_is_one_error(root: Path) -> None:
    tree = Tree([File("a/b/f", b""), File("a/g", b""), Link("a/k", "g"), File("c/f", b"")])
    with (
        failing(errno.EDQUOT, when=lambda name, arguments: name == "make_directory" and arguments[1] == "a"),
        pytest.raises(ConvergeError) as caught,
    ):
        host(root).converge("gpu", tree)
    assert [(error.path, error.kind, error.errno) for error in caught.value.errors] == [
        ("a", "directory", errno.EDQUOT)
    ]
    assert sorted(picture(root, records=False)) == ["c", "c/f"]
    host(root).converge("gpu", tree)
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_an_empty_directory_that_cannot_be_removed_is_an_error(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"")]))
    with (
        failing(errno.EACCES, when=lambda name, arguments: name == "remove_directory" and arguments[1] == "a"),
        pytest.raises(ConvergeError, match="a: cannot remove directory"),
    ):
        host(root).converge("gpu", Tree.empty)
    host(root).converge("gpu", Tree.empty)
    assert picture(root) == {}


def test_after_a_reboot_directories_of_ours_still_go(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a/b/f", b""), Directory("c")]))
    shutil.rmtree(root / "a/b")
    (root / "a/b").mkdir()
    host(root, LATER_BOOT).converge("gpu", Tree.empty)
    assert picture(root) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"version":1,"boot_id":"b","made":{"../a":null},"needs":{}}',
        b'{"version":1,"boot_id":"b","made":{"a":[1]},"needs":{}}',
        b'{"version":1,"boot_id":"b","made":{},"needs":{"gpu":[1]}}',
        b'{"version":1,"boot_id":"b","made":{},"needs":{"gpu":7}}',
    ],
    ids=["not-json", "list", "unsafe-path", "identity", "need-that-is-no-path", "needs-that-are-no-list"],
)
def test_a_damaged_ledger_is_set_aside_and_never_fatal(root: Path, content: bytes) -> None:
    host(root).converge("gpu", Tree([File("a/f", b"")]))
    ledger = root / "state/parents.json"
    ledger.write_bytes(content)
    host(root).plan("gpu", Tree.empty)
    host(root).converge("gpu", Tree([File("a/f", b""), File("b/f", b"")]))
    assert ledger.with_suffix(".damaged").read_bytes() == content
    host(root).converge("gpu", Tree.empty)
    assert directories(root) == ["a"]
