"""The kinds of things that a simulator can want to be there: frozen values, no I/O.

Each kind has a `path` relative to the root, a `mode` (permission bits, set whatever the umask) and a `fingerprint`: a
short text that is equal for two surfaces of one kind exactly if what they hold is equal, modes aside.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import ClassVar

from msgspec import Struct

from simnode.host.errors import TreeError
from simnode.host.paths import check_path


def content_fingerprint(content: bytes) -> str:
    """The fingerprint of a file that holds `content`; its size comes first."""
    return f"{len(content)}:{sha256(content).hexdigest()}"


def _check(path: str, mode: int) -> None:
    check_path(path)
    if not 0 <= mode <= 0o7777:
        raise TreeError(f"{path}: mode {mode:#o} is not a set of permission bits")


class File(Struct, frozen=True, dict=True):
    """A file with fixed content, replaced by rename: always a new inode, so whoever has the old one open keeps it.

    The content is hashed once for each value: keep the value of a large file rather than making it anew for each tree.
    """

    path: str
    content: bytes
    mode: int = 0o644
    kind: ClassVar[str] = "file"

    def __post_init__(self) -> None:
        _check(self.path, self.mode)

    @cached_property
    def fingerprint(self) -> str:
        return content_fingerprint(self.content)


class LiveFile(Struct, frozen=True):
    """A file that its writer fills in place: made once with `size` bytes of zeros, its content never looked at.

    Later its existence, kind, size (it may grow) and mode are kept; the inode stays as long as the file does.
    """

    path: str
    size: int
    mode: int = 0o644
    kind: ClassVar[str] = "live file"

    def __post_init__(self) -> None:
        _check(self.path, self.mode)
        if self.size < 0:
            raise TreeError(f"{self.path}: size {self.size} is negative")

    @property
    def fingerprint(self) -> str:
        return str(self.size)


class Link(Struct, frozen=True):
    """A symbolic link; `target` is taken verbatim and may lead anywhere."""

    path: str
    target: str
    mode: ClassVar[int] = 0o777
    kind: ClassVar[str] = "link"

    def __post_init__(self) -> None:
        check_path(self.path)
        if not self.target or "\0" in self.target or len(self.target.encode(errors="surrogateescape")) > 4095:
            raise TreeError(f"{self.path}: {self.target!r} cannot be the target of a link")

    @property
    def fingerprint(self) -> str:
        return self.target


class CharacterDevice(Struct, frozen=True):
    """A real device node, for which the engine needs CAP_MKNOD. Majors have 12 bits and minors 20, as in the kernel."""

    path: str
    major: int
    minor: int
    mode: int = 0o666
    kind: ClassVar[str] = "character device"

    def __post_init__(self) -> None:
        _check(self.path, self.mode)
        if not (0 <= self.major < 1 << 12 and 0 <= self.minor < 1 << 20):
            raise TreeError(f"{self.path}: {self.major}:{self.minor} is not a device number")

    @property
    def fingerprint(self) -> str:
        return f"{self.major}:{self.minor}"


class StandIn(Struct, frozen=True):
    """What an ordinary user gets for a device node: an empty file with /dev/null mounted over it.

    `mode` is the hidden file's; through the mount everybody sees that of /dev/null.
    """

    path: str
    mode: int = 0o666
    kind: ClassVar[str] = "stand-in"
    fingerprint: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _check(self.path, self.mode)


class Directory(Struct, frozen=True):
    """A directory wanted for its own sake, because something may mount it: never replaced, it keeps its inode.

    With `take_over`, what an earlier time left in its place gives way: a link with that target, or one that leads
    nowhere.
    """

    path: str
    mode: int = 0o755
    take_over: str | None = None
    kind: ClassVar[str] = "directory"
    fingerprint: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _check(self.path, self.mode)


Surface = File | LiveFile | Link | CharacterDevice | StandIn | Directory
