"""The few system calls on namespaces that Python 3.11 has no function for."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

_libc = ctypes.CDLL(None, use_errno=True)
_IN_ORDER = (("user", CLONE_NEWUSER), ("pid", CLONE_NEWPID), ("mnt", CLONE_NEWNS))
"""The user namespace first: only then are there capabilities to enter the others. /proc changes with the last."""


class Namespaces:
    """Those of one process, held open so that they can be joined even after its /proc entry went away."""

    def __init__(self, process: Path) -> None:
        """`process`: its directory in /proc."""
        self._root = os.open(process / "root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._files: list[tuple[int, int]] = []
        for name, kind in _IN_ORDER:
            theirs = process / "ns" / name
            if theirs.readlink() != Path(f"/proc/self/ns/{name}").readlink():
                self._files.append((os.open(theirs, os.O_RDONLY | os.O_CLOEXEC), kind))

    def join(self) -> None:
        """Enter them all; of the pid namespace only children will be members. Needs a process of one thread.

        A mount namespace is entered at its very top: inside a chroot that would be outside of it.
        """
        for file, kind in self._files:
            _check(_libc.setns(file, kind), "setns")
            os.close(file)
        os.fchdir(self._root)
        os.chroot(".")
        os.close(self._root)


def become_root() -> None:
    """Nest a user namespace in which the caller is root, and has all capabilities over nothing but itself."""
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(CLONE_NEWUSER), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def become_user(uid: int, gid: int) -> None:
    """Give up root's identity for this user's, for good; what the user may do to its own processes stays possible."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def die_with_parent(parent: int, signal: int) -> None:
    """Have the kernel send `signal` to this process when its parent ends; exits at once if it has already."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(1)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
