"""The ground: what really lies beneath the root, compared with what is wanted and with what the journal remembers.

It only looks. Contents are read only where the cheaper identity does not settle the matter.
"""

from __future__ import annotations

import os
import stat

from simnode.host.journal import Entry, Identity
from simnode.host.mounts import Mounts
from simnode.host.paths import Beneath
from simnode.host.statx import birth
from simnode.host.surfaces import CharacterDevice, File, Link, LiveFile, StandIn, Surface, content_fingerprint

_NAMES = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
}


def described(found: os.stat_result) -> str:
    """What `found` is, in words."""
    if stat.S_ISCHR(found.st_mode):
        return f"a character device {os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return _NAMES.get(stat.S_IFMT(found.st_mode), "something unknown")


class Ground:
    """Questions about single paths. `found` is always what `Beneath.stat` answered for that path a moment ago."""

    def __init__(self, beneath: Beneath, mounts: Mounts) -> None:
        self._beneath = beneath
        self._mounts = mounts
        self.stat = beneath.stat

    def holds(self, path: str, found: os.stat_result, kind: str, fingerprint: str) -> bool:
        """True if what is there holds what the fingerprint stands for, modes aside."""
        mode = found.st_mode
        match kind:
            case CharacterDevice.kind:
                return stat.S_ISCHR(mode) and f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}" == fingerprint
            case File.kind:
                return stat.S_ISREG(mode) and self._content(path, found, fingerprint) == fingerprint
            case LiveFile.kind:
                return stat.S_ISREG(mode) and found.st_size >= int(fingerprint)
            case Link.kind:
                return stat.S_ISLNK(mode) and self._target(path) == fingerprint
            case StandIn.kind:
                return self.covered(path, found) != 0 or (stat.S_ISREG(mode) and found.st_size == 0)
        return False

    def covered(self, path: str, found: os.stat_result) -> int:
        """The id of the mount by which a stand-in at `path` shows /dev/null, 0 if there is none."""
        return self._mounts.over(*self._beneath.place(path)) if self._mounts.shows(found) else 0

    def mounted(self, path: str) -> int:
        """The same, whatever lies at `path`. Raises OSError."""
        found = self.stat(path)
        return 0 if found is None else self.covered(path, found)

    def identity(self, path: str, found: os.stat_result, kind: str) -> Identity:
        """What recognises the object there, as an entry of this kind records it."""
        if kind == StandIn.kind:
            return (self.covered(path, found),)
        if kind == File.kind:
            return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size)
        if kind == LiveFile.kind:
            return (found.st_dev, found.st_ino, birth(*self._beneath.place(path)))
        return (found.st_dev, found.st_ino)

    def is_object(self, path: str, found: os.stat_result, entry: Entry) -> bool:
        """True if what is there is still what the entry says was made; after a reboot, if it has the same content.

        A file whose mode or times somebody changed is the same object, one whose content was changed is not.
        """
        holds = self.holds
        if entry.identity is None:
            return holds(path, found, entry.kind, entry.fingerprint)
        if entry.kind == StandIn.kind:
            mounted = self.covered(path, found)
            return mounted == entry.identity[0] if mounted else holds(path, found, entry.kind, entry.fingerprint)
        if (found.st_dev, found.st_ino) != entry.identity[:2]:
            return False
        same = self.identity(path, found, entry.kind) == entry.identity
        if entry.kind == LiveFile.kind:
            return same and stat.S_ISREG(found.st_mode)
        return (same and entry.kind == File.kind) or holds(path, found, entry.kind, entry.fingerprint)

    def is_identical(self, path: str, found: os.stat_result, surface: Surface) -> bool:
        """True if nothing need be done for the surface."""
        if isinstance(surface, StandIn):
            return self.covered(path, found) != 0
        mode_right = isinstance(surface, Link) or stat.S_IMODE(found.st_mode) == surface.mode
        return mode_right and self.holds(path, found, surface.kind, surface.fingerprint)

    def _content(self, path: str, found: os.stat_result, fingerprint: str) -> str | None:
        if not fingerprint.startswith(f"{found.st_size}:"):
            return None
        try:
            with os.fdopen(self._beneath.open(path), "rb") as file:
                return content_fingerprint(file.read(found.st_size + 1))
        except OSError:
            return None

    def _target(self, path: str) -> str | None:
        directory, name = self._beneath.place(path)
        try:
            return os.readlink(name, dir_fd=directory)
        except OSError:
            return None
