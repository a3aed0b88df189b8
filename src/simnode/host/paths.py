"""Safe paths: what may be a path beneath a root, and how it is reached without following a link.

A path is a POSIX string relative to the root ("driver/dev/nvidia0"). It is walked component by component through
directory descriptors, so a link planted anywhere on the way is an error and never a way out.
"""

from __future__ import annotations

import errno
import os
import re
from types import TracebackType

from simnode.host.errors import TreeError

STATE = "state"
TEMPORARY_PREFIX = ".simnode-"

_SAFE = re.compile(r"(?:(?!\.{1,2}(?:/|\Z)|\.simnode-)[^/\x00-\x1f\x7f]{1,255}(?:/(?!\Z)|\Z))+")
_OPEN_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_AT_MOST = 64


def check_path(path: str) -> None:
    """Raise TreeError unless `path` is relative, normal, printable and outside the engine's own `state/`."""
    if not isinstance(path, str) or not _SAFE.fullmatch(path) or not _fits(path):
        raise TreeError(
            f"path {path!r} is not safe: want relative components without '.', '..', '.simnode-' or controls"
        )
    if path == STATE or path.startswith(STATE + "/"):
        raise TreeError(f"path {path!r} lies in {STATE}/, which is the engine's own")


def _fits(path: str) -> bool:
    if path.isascii():
        return len(path) < 4096
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded) < 4096 and all(len(component) < 256 for component in encoded.split(b"/"))


def parent_of(path: str) -> str:
    """The directory of `path`; "" is the root."""
    return path.rpartition("/")[0]


def ancestors(path: str) -> list[str]:
    """The proper ancestors of `path` below the root, the nearest first."""
    found = []
    while path := parent_of(path):
        found.append(path)
    return found


def temporary(owner: str) -> str:
    """The one name under which `owner` prepares things in a directory; it ends in neither .yaml nor .json."""
    return f"{TEMPORARY_PREFIX}{owner}~"


class BlockedError(OSError):
    """Raised when something on the way to a path is not a directory; `path` names it."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        self.path = path


class Beneath:
    """The directories below one root, opened on demand and kept for the length of one operation (a context manager).

    A descriptor it hands out is good until the next call that takes another directory.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._descriptors = {"": os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}

    def __enter__(self) -> Beneath:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        os.close(self._descriptors.pop(""))

    def directory(self, path: str) -> int:
        """A descriptor of the directory `path`, for use as `dir_fd`. Raises FileNotFoundError or BlockedError."""
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            if len(self._descriptors) >= _OPEN_AT_MOST:
                self.forget()
            descriptor = self._walk(path)
        return descriptor

    def place(self, path: str) -> tuple[int, str]:
        """The descriptor of the directory that holds `path`, and its last component."""
        parent, _, name = path.rpartition("/")
        return self.directory(parent), name

    def stat(self, path: str) -> os.stat_result | None:
        """What lies at `path` itself (no link followed), None if nothing does. Raises BlockedError."""
        parent, _, name = path.rpartition("/")
        try:
            return os.stat(name, dir_fd=self.directory(parent), follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, path: str) -> int:
        """A descriptor to read `path` with; never waits for a FIFO's other end."""
        directory, name = self.place(path)
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)

    def forget(self, path: str = "") -> None:
        """Close what is open at and below `path`: it may be another directory from now on."""
        below = path and path + "/"
        for known in [known for known in self._descriptors if known and (known == path or known.startswith(below))]:
            os.close(self._descriptors.pop(known))

    def _walk(self, path: str) -> int:
        known = self._descriptors.get(path)
        if known is not None:
            return known
        parent, _, name = path.rpartition("/")
        above = self._walk(parent)
        try:
            descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise BlockedError(path) from None
            raise
        self._descriptors[path] = descriptor
        return descriptor
