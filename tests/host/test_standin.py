"""A stand-in reads as /dev/null, as an ordinary user and as root, and goes without leaving a mount."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from simnode.host import CharacterDevice, ConvergeError, File, Mounts, StandIn, Surface, Tree
from tests.host.child import as_user, mount_tmpfs, mounts_below, with_own_mounts
from tests.host.scene import LATER_BOOT, failing, host, picture

ONE = Tree([StandIn("dev/nvidia0")])


def is_null(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path("/dev/null").stat().st_rdev


def test_a_stand_in_reads_as_null_and_goes_with_its_mount(uid: int, shared_root: Path) -> None:
    def check() -> None:
        device = shared_root / "dev/nvidia0"
        host(shared_root).converge("gpu", ONE)
        assert is_null(device)
        with device.open("r+b", buffering=0) as opened:
            assert opened.write(b"x") == 1
            assert opened.read() == b""
        assert not host(shared_root).plan("gpu", ONE)
        assert mounts_below(shared_root) == [str(device)]
        host(shared_root).converge("gpu", Tree.empty)
        assert mounts_below(shared_root) == []
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def test_a_stand_in_that_somebody_uses_goes_too(uid: int, shared_root: Path) -> None:
    def check() -> None:
        host(shared_root).converge("gpu", ONE)
        with (shared_root / "dev/nvidia0").open("rb"):
            host(shared_root).converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def test_an_engine_that_saw_it_covered_sees_it_uncovered(uid: int, shared_root: Path) -> None:
    def check() -> None:
        one = host(shared_root)
        one.converge("gpu", ONE)
        assert not one.plan("gpu", ONE)
        uncover(shared_root / "dev", "nvidia0")
        assert [step.action for step in one.plan("gpu", ONE)] == ["repair"]
        one.converge("gpu", ONE)
        assert not one.plan("gpu", ONE)
        one.converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def test_a_stand_in_whose_mount_was_taken_off_is_covered_again(uid: int, shared_root: Path) -> None:
    def check() -> None:
        host(shared_root).converge("gpu", ONE)
        uncover(shared_root / "dev", "nvidia0")
        assert [step.action for step in host(shared_root).plan("gpu", ONE)] == ["repair"]
        host(shared_root).converge("gpu", ONE)
        assert is_null(shared_root / "dev/nvidia0")
        assert mounts_below(shared_root) == [str(shared_root / "dev/nvidia0")]
        uncover(shared_root / "dev", "nvidia0")
        (shared_root / "dev/nvidia0").unlink()
        host(shared_root).converge("gpu", ONE)
        assert is_null(shared_root / "dev/nvidia0")
        uncover(shared_root / "dev", "nvidia0")
        host(shared_root).converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


@pytest.mark.parametrize("other", [File("dev/nvidia0", b"x"), StandIn("dev/nvidia0/below")], ids=["file", "directory"])
def test_a_stand_in_changes_its_kind_and_back(uid: int, shared_root: Path, other: Surface) -> None:
    def check() -> None:
        for tree in (ONE, Tree([other]), ONE, Tree.empty):
            host(shared_root).converge("gpu", tree)
            assert not host(shared_root).plan("gpu", tree)
            assert len(mounts_below(shared_root)) == sum(isinstance(surface, StandIn) for surface in tree)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def test_a_mount_of_somebody_else_over_our_stand_in_stays(uid: int, shared_root: Path) -> None:
    def check() -> None:
        host(shared_root).converge("gpu", ONE)
        uncover(shared_root / "dev", "nvidia0")
        cover(shared_root / "dev", "nvidia0", "/dev/zero")
        with pytest.raises(ConvergeError) as caught:
            host(shared_root).converge("gpu", ONE)
        assert [(error.path, error.errno) for error in caught.value.errors] == [("dev/nvidia0", errno.EBUSY)]
        assert mounts_below(shared_root) == [str(shared_root / "dev/nvidia0")]

    with_own_mounts(uid, check)


def test_a_hidden_file_that_somebody_filled_stays(uid: int, shared_root: Path) -> None:
    def check() -> None:
        host(shared_root).converge("gpu", ONE)
        uncover(shared_root / "dev", "nvidia0")
        (shared_root / "dev/nvidia0").write_bytes(b"foreign")
        cover(shared_root / "dev", "nvidia0", "/dev/null")
        host(shared_root).converge("gpu", Tree.empty)
        uncover(shared_root / "dev", "nvidia0")
        assert (shared_root / "dev/nvidia0").read_bytes() == b"foreign"

    with_own_mounts(uid, check)


def test_what_was_mounted_there_before_us_is_not_ours(uid: int, shared_root: Path) -> None:
    def check() -> None:
        (shared_root / "dev").mkdir()
        (shared_root / "dev/nvidia0").touch()
        cover(shared_root / "dev", "nvidia0", "/dev/null")
        before = picture(shared_root)
        host(shared_root).converge("gpu", ONE)
        host(shared_root).converge("gpu", Tree.empty)
        assert picture(shared_root) == before
        assert mounts_below(shared_root) == [str(shared_root / "dev/nvidia0")]

    with_own_mounts(uid, check)


def test_an_empty_file_that_was_there_before_is_not_covered(uid: int, shared_root: Path) -> None:
    def check() -> None:
        (shared_root / "dev").mkdir()
        (shared_root / "dev/nvidia0").touch()
        with pytest.raises(ConvergeError, match="dev/nvidia0: occupied by a regular file"):
            host(shared_root).converge("gpu", ONE)
        assert mounts_below(shared_root) == []

    with_own_mounts(uid, check)


def test_the_files_of_stand_ins_go_after_a_reboot(uid: int, shared_root: Path) -> None:
    def check() -> None:
        host(shared_root).converge("gpu", ONE)
        uncover(shared_root / "dev", "nvidia0")
        host(shared_root, LATER_BOOT).converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSPC])
def test_a_stand_in_that_cannot_be_covered_leaves_nothing(uid: int, shared_root: Path, code: int) -> None:
    def check() -> None:
        with failing(code, when=lambda name, _: name == "bind"), pytest.raises(ConvergeError) as caught:
            host(shared_root).converge("gpu", ONE)
        assert [(error.path, error.kind, error.errno) for error in caught.value.errors] == [
            ("dev/nvidia0", "stand-in", code)
        ]
        assert sorted(picture(shared_root, records=False)) == ["dev"]
        host(shared_root).converge("gpu", ONE)
        host(shared_root).converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def test_who_may_not_make_device_nodes_is_told_what_it_takes(uid: int, shared_root: Path) -> None:
    def check() -> None:
        tree = Tree([CharacterDevice("dev/nvidia0", 195, 0)])
        if uid == 0:
            host(shared_root).converge("gpu", tree)
            assert stat.S_ISCHR((shared_root / "dev/nvidia0").stat().st_mode)
            return
        with pytest.raises(ConvergeError, match=r"Operation not permitted \(it takes CAP_MKNOD") as caught:
            host(shared_root).converge("gpu", tree)
        assert caught.value.errors[0].errno == errno.EPERM
        assert sorted(picture(shared_root, records=False)) == ["dev"]

    with_own_mounts(uid, check)


def test_a_directory_that_is_closed_to_us_keeps_nothing_else_from_standing(uid: int, shared_root: Path) -> None:
    def check() -> None:
        (shared_root / "closed").mkdir(mode=0)
        tree = Tree([File("closed/f", b""), File("closed/d/f", b""), File("open/f", b"")])
        try:
            host(shared_root).converge("gpu", tree)
            failed = set()
        except ConvergeError as caught:
            failed = {error.path for error in caught.errors}
        assert failed == ({"closed/f", "closed/d", "closed/d/f"} if uid else set())
        assert (shared_root / "open/f").exists()
        (shared_root / "closed").chmod(0o755)
        host(shared_root).converge("gpu", tree)
        (shared_root / "closed").chmod(0)
        if uid:
            with pytest.raises(ConvergeError, match="closed/f: cannot be looked at: Permission denied"):
                host(shared_root).converge("gpu", Tree.empty)
            (shared_root / "closed").chmod(0o755)
        host(shared_root).converge("gpu", Tree.empty)
        assert sorted(picture(shared_root)) == ["closed"]

    as_user(uid, check)


def test_a_disk_that_is_really_full_is_repaired_once_there_is_room(uid: int, shared_root: Path) -> None:
    def check() -> None:
        mount_tmpfs(shared_root, "size=256k")
        tree = Tree([StandIn("dev/nvidia0"), File("big", b"x" * 400_000), File("small", b"y")])
        with pytest.raises(ConvergeError) as caught:
            host(shared_root).converge("gpu", tree)
        assert [(error.path, error.errno) for error in caught.value.errors] == [("big", errno.ENOSPC)]
        assert sorted(picture(shared_root, records=False)) == ["dev", "dev/nvidia0", "small"]
        host(shared_root).converge("gpu", Tree([File("big", b"x" * 100_000)]))
        host(shared_root).converge("gpu", Tree.empty)
        assert picture(shared_root) == {}

    with_own_mounts(uid, check)


def cover(directory: Path, name: str, source: str) -> None:
    descriptor = os.open(directory, os.O_PATH)
    Mounts(source).cover(descriptor, name)
    os.close(descriptor)


def uncover(directory: Path, name: str) -> None:
    descriptor = os.open(directory, os.O_PATH)
    Mounts().uncover(descriptor, name)
    os.close(descriptor)
