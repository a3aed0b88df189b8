"""A run that dies at any of its calls leaves what the next run repairs, and then takes away without a trace."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from simnode.host import CharacterDevice, Directory, File, Link, LiveFile, StandIn, Surface, Tree
from tests.conftest import ORDINARY
from tests.host.child import mount_tmpfs, mounts_below, with_own_mounts
from tests.host.scene import BOOT, LATER_BOOT, Death, around_calls, host, picture

KILLED = 77
WAYS = pytest.mark.parametrize("torn", [False, True], ids=["between-calls", "within-a-write"])
LEAST = {False: 100, True: 10}
"""At so many calls, or so many writes, a run was to die."""
Device = Callable[[str, int], Surface]


def node(path: str, minor: int) -> Surface:
    return CharacterDevice(path, 195, minor)


def stand_in(path: str, minor: int) -> Surface:
    return StandIn(path, 0o600 + minor)


def live(path: str, minor: int) -> Surface:
    return LiveFile(path, 16 + minor)


def first(device: Device) -> Tree:
    return Tree(
        [
            Directory("driver/dev"),
            device("driver/dev/nvidia0", 0),
            device("driver/dev/nvidia1", 1),
            File("driver/lib/libx.so.1", b"one", 0o755),
            Link("driver/lib/libx.so", "libx.so.1"),
            File("driver/config/same", b"same"),
            LiveFile("driver/config/image", 64),
            File("turns/file", b"into a directory"),
            File("flat/deep/er", b"into a file"),
        ]
    )


def second(device: Device) -> Tree:
    return Tree(
        [
            Directory("driver/dev", 0o750),
            device("driver/dev/nvidia1", 2),
            device("driver/dev/nvidia2", 3),
            File("driver/lib/libx.so.2", b"two", 0o755),
            Link("driver/lib/libx.so", "libx.so.2"),
            LiveFile("driver/config/image", 128),
            File("turns/file/below", b""),
            File("flat", b""),
            Directory("sys/bus"),
        ]
    )


def furnish(root: Path) -> None:
    """What others had there before us: some of it in the way of nothing, some of it already as wanted."""
    (root / "driver/config").mkdir(parents=True)
    (root / "driver/config/same").write_bytes(b"same")
    (root / "driver/config/same").chmod(0o644)
    (root / "driver/config/foreign").write_bytes(b"foreign")
    (root / "sys").mkdir()


def die_at_each_call(root: Path, device: Device, *, torn: bool) -> None:
    """Kill a run first -> second -> empty at its n-th call, for every n, and recover in this process each time."""
    furnish(root)
    trees = (first(device), second(device), Tree.empty)
    before = picture(root)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    calls = 0
    reached = True
    while reached:
        calls += 1
        reached = killed(root, trees, calls, torn=torn)
        engine = host(root)
        engine.converge("gpu", second(device))
        assert not engine.plan("gpu", second(device)), f"after call {calls}"
        for path, mode in second(device).directories.items():
            assert stat.S_IMODE((root / path).stat().st_mode) == (mode or 0o755), f"{path} after call {calls}"
        engine.converge("gpu", Tree.empty)
        assert picture(root) == before, f"after call {calls}"
        assert mounts_below(root)[1:] == [], f"after call {calls}"
    assert calls > LEAST[torn]
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208


def killed(root: Path, trees: Iterable[Tree], at: int, *, torn: bool) -> bool:
    """Whether a child that converges these and dies at the call, or within the write, number `at` got that far."""
    child = os.fork()
    if child == 0:
        try:
            with around_calls(Death(at, torn=torn, die=lambda: os._exit(KILLED))):
                for tree in trees:
                    host(root).converge("gpu", tree)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


@WAYS
def test_death_at_any_call(root: Path, torn: bool) -> None:
    die_at_each_call(root, node if os.geteuid() == 0 else live, torn=torn)


@WAYS
@pytest.mark.parametrize("uid", [ORDINARY if os.geteuid() == 0 else os.geteuid()], ids=["ordinary"])
def test_death_at_any_call_with_stand_ins(uid: int, shared_root: Path, torn: bool) -> None:
    def check() -> None:
        mount_tmpfs(shared_root, "size=1m")
        die_at_each_call(shared_root, stand_in, torn=torn)

    with_own_mounts(uid, check)


@WAYS
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_death_while_only_directories_are_made(root: Path, torn: bool, mask: int) -> None:
    before = picture(root)
    tree = Tree([Directory("a/b", 0o750)])
    calls = 0
    reached = True
    while reached:
        calls += 1
        earlier = os.umask(mask)
        reached = killed(root, [tree], calls, torn=torn)
        if calls % 2:
            host(root).converge("gpu", tree)
            assert stat.S_IMODE((root / "a").stat().st_mode) == 0o755, f"after call {calls}"
        host(root).converge("gpu", Tree.empty)
        os.umask(earlier)
        assert picture(root) == before, f"after call {calls}"
    assert calls > (10 if not torn else 2)


@WAYS
def test_death_and_a_reboot(root: Path, torn: bool) -> None:
    """After a reboot only contents tell what is ours; everything still goes."""
    (root / "driver").mkdir()
    trees = (first(live), second(live), Tree.empty)
    before = picture(root)
    calls = 0
    reached = True
    while reached:
        calls += 3 if not torn else 1
        reached = killed(root, trees, calls, torn=torn)
        host(root, LATER_BOOT).converge("gpu", second(live))
        host(root, BOOT).converge("gpu", Tree.empty)
        assert picture(root) == before, f"after call {calls}"
    assert calls > LEAST[torn]


@WAYS
def test_death_of_the_recovery_too(root: Path, torn: bool) -> None:
    furnish(root)
    trees = (first(live), second(live), Tree.empty)
    before = picture(root)
    for at in range(5, 200, 29):
        killed(root, trees, at, torn=False)
        for again in range(1, 12, 2) if torn else range(3, 60, 11):
            killed(root, trees, again, torn=torn)
        host(root).converge("gpu", Tree.empty)
        assert picture(root) == before
