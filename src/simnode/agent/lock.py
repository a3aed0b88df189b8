"""The two locks of a node, flocks on files that are never unlinked: one for the time of a stage wave, one for life.

Whoever decides by what is staged (an injector) holds the staging lock shared meanwhile and looks at the staged probe
*after* it has it; the agent stages under the exclusive one. The files lie where no workload can open them, or any could
hold the agent up. Linux grants a shared flock even while somebody waits for the exclusive one, so holders that overlap
would starve the agent. Therefore it first announces itself, by a byte-range lock on the same file (which nobody else
takes, so that needs no waiting, and which ends with the descriptor); `shared` looks at that and backs off. Who takes a
bare flock can still hold the agent up, but for no longer than it is ready to wait.

The locks are polled for, not waited for in a thread: a thread that waits cannot be stopped, and might get the lock when
nobody wants it any more. Their files belong on a tmpfs (/run), where opening and locking never hang.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_POLL = 0.005
# struct flock (linux/fcntl.h, 64-bit): l_type, l_whence, l_start, l_len, l_pid, padding; one byte from the start.
_RANGE = struct.Struct("@hhqqi0q")


class LockHeldError(Exception):
    """Raised when a lock was not to be had: in time, at once, or (the one for life) as long as another agent runs."""


class StagingLock:
    """The exclusive side. Without a path nobody else looks, and there is nothing to lock."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor = -1
        self._waiting = False
        self.held = False

    @property
    def waiting(self) -> str:
        """What it is that others hold up just now, in words; "" if nobody does."""
        return f"waits for {self._path}, which others hold" if self._waiting else ""

    async def acquire(self, timeout: float) -> None:
        """Return once held, at once if it is already; raises LockHeldError after `timeout` seconds, or OSError."""
        if self.held:
            return
        if self._path is not None:
            try:
                async with asyncio.timeout(timeout):
                    while not self._try(self._path):
                        self._waiting = True
                        await asyncio.sleep(_POLL)
            except TimeoutError:
                raise LockHeldError(f"{self._path} is held by others for {timeout:.3g} s now") from None
            finally:
                self._waiting = False
                if not self.held:
                    self.release()
        self.held = True

    def release(self) -> None:
        """Let others have it; the announcement goes with it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self.held = False

    def _try(self, path: Path) -> bool:
        if self._descriptor < 0:
            self._descriptor = _open(path)
            with contextlib.suppress(BlockingIOError):
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _RANGE.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        if not _flock(self._descriptor, fcntl.LOCK_EX):
            return False
        self.held = _names(path, self._descriptor)
        if not self.held:
            self.release()
        return self.held


@contextlib.contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the staging lock shared. Raises LockHeldError if the agent stages or wants to; OSError if it never ran."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        asked = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _RANGE.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0))
        if _RANGE.unpack(asked)[0] != fcntl.F_UNLCK or not _flock(descriptor, fcntl.LOCK_SH):
            raise LockHeldError("the agent is staging")
        if not _names(path, descriptor):
            raise LockHeldError(f"{path} was replaced meanwhile: look again")
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def for_life(path: Path | None) -> Iterator[None]:
    """Be the only agent of a node as long as this lasts; raises LockHeldError if there is one already."""
    if path is None:
        yield
        return
    descriptor = -1
    try:
        while descriptor < 0 or not _names(path, descriptor):
            if descriptor >= 0:
                os.close(descriptor)
            descriptor = _open(path)
            if not _flock(descriptor, fcntl.LOCK_EX):
                raise LockHeldError(f"another agent keeps this node and holds {path}: end it first, or another root")
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _flock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _names(path: Path, descriptor: int) -> bool:
    """True if the path still leads to what is open; a file that somebody removed keeps nobody out."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
