"""Running a part of a test in a child process: with mounts of its own, or under another uid."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNS = 0x20000
_CLONE_NEWUSER = 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_LIBC = ctypes.CDLL(None, use_errno=True)


def in_child(action: Callable[[], None]) -> None:
    """Run `action` in a child process; what it raises there fails the test here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.close(reader)
            action()
        except BaseException:
            os.write(writer, traceback.format_exc().encode()[-60_000:])
            code = 1
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as report:
        text = report.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, text or f"child ended with status {status:#x}"


def with_own_mounts(uid: int, action: Callable[[], None]) -> None:
    """Run `action` in a child in a mount namespace of its own: root as root, others inside a user namespace."""

    def enter() -> None:
        own_mounts(uid)
        action()

    in_child(enter)


def as_user(uid: int, action: Callable[[], None]) -> None:
    """Run `action` in a child process under `uid`, without any privilege if that is not root's."""

    def enter() -> None:
        become(uid)
        action()

    in_child(enter)


def become(uid: int) -> None:
    """Give up root for `uid`, for good."""
    if uid and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # A change of uid makes the process undumpable, and its files in /proc root's: PR_SET_DUMPABLE.
        _checked(_LIBC.prctl(4, 1, 0, 0, 0))


def own_mounts(uid: int) -> None:
    """Become `uid` and give this process mounts of its own."""
    become(uid)
    flags = _CLONE_NEWNS | (_CLONE_NEWUSER if uid else 0)
    group = os.getegid()
    _checked(_LIBC.unshare(flags))
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _checked(_LIBC.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))


def mount_tmpfs(path: Path, options: str) -> None:
    """Mount a fresh tmpfs; only after `own_mounts`."""
    _checked(_LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", ctypes.c_ulong(0), options.encode()))


def mounts_below(path: Path) -> list[str]:
    """The mount points at and below `path` in this process."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point == str(path) or point.startswith(f"{path}/")]


def _checked(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
