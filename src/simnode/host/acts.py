"""The acts on single surfaces: put one there, repair it in place, take it away.

Everything new is prepared under the owner's temporary name in the same directory and then renamed, so at no moment is
something half made visible, and nothing that is in the way is ever overwritten unawares.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from simnode.host import syscalls
from simnode.host.ground import Ground
from simnode.host.journal import Entry, Identity
from simnode.host.mounts import Mounts
from simnode.host.paths import Beneath, temporary
from simnode.host.surfaces import CharacterDevice, Directory, File, Link, LiveFile, StandIn, Surface


class Acts:
    """The acts of one converge of one owner. All raise OSError and then leave what was there, or nothing."""

    def __init__(self, owner: str, beneath: Beneath, mounts: Mounts, ground: Ground) -> None:
        self._temporary = temporary(owner)
        self._beneath = beneath
        self._mounts = mounts
        self._ground = ground

    def create(self, surface: Surface) -> Identity:
        """Put the surface where nothing is. Raises FileExistsError if something is by now."""
        with self._prepared(surface) as (directory, name):
            syscalls.rename_new(directory, self._temporary, name)
        return self._placed(surface)

    def replace(self, surface: Surface) -> Identity:
        """Put the surface in the place of what is there: ours, or standing where ours must be."""
        with self._prepared(surface) as (directory, name):
            found = self._beneath.stat(surface.path)
            if found is not None and self._ground.covered(surface.path, found):
                self._mounts.uncover(directory, name)
            elif found is not None and stat.S_ISDIR(found.st_mode):
                syscalls.remove_directory(directory, name)
            syscalls.rename(directory, self._temporary, name)
        return self._placed(surface)

    def repair(self, surface: Surface) -> Identity:
        """Set right what can be without a new inode: a mode, the size of a live file, the mount of a stand-in."""
        directory, name = self._beneath.place(surface.path)
        match surface:
            case StandIn():
                self._mounts.cover(directory, name)
            case LiveFile():
                self._grow(directory, name, surface)
                syscalls.set_mode_at(directory, name, surface.mode)
            case _:
                syscalls.set_mode_at(directory, name, surface.mode)
        return self.identity(surface)

    def remove(self, path: str, entry: Entry) -> None:
        """Take away what the entry says we made; what turns out not to be ours stays."""
        directory, name = self._beneath.place(path)
        found = self._beneath.stat(path)
        if found is None or not self._ground.is_object(path, found, entry):
            return
        if entry.kind == StandIn.kind and self._ground.covered(path, found):
            self._mounts.uncover(directory, name)
            found = self._beneath.stat(path)
            if found is None or not stat.S_ISREG(found.st_mode) or found.st_size:
                return
        with suppress(FileNotFoundError):
            syscalls.remove(directory, name)

    def sweep(self, directories: Iterable[str]) -> None:
        """Remove what a killed run of this owner had prepared in these directories."""
        for path in directories:
            with suppress(OSError):
                self._drop(self._beneath.directory(path))

    def identity(self, surface: Surface) -> Identity:
        """What recognises the surface that stands. Raises FileNotFoundError if it no longer does."""
        found = self._beneath.stat(surface.path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), surface.path)
        return self._ground.identity(surface.path, found, surface.kind)

    @contextmanager
    def _prepared(self, surface: Surface) -> Iterator[tuple[int, str]]:
        """The surface under the temporary name in its directory, which goes if it cannot be put in its place."""
        directory, name = self._beneath.place(surface.path)
        try:
            try:
                self._build(directory, surface)
            except FileExistsError:
                self._drop(directory)
                self._build(directory, surface)
            yield directory, name
        except OSError:
            self._drop(directory)
            raise

    def _build(self, directory: int, surface: Surface) -> None:
        name = self._temporary
        match surface:
            case Link():
                syscalls.make_link(directory, name, surface.target)
            case CharacterDevice():
                syscalls.make_device(directory, name, surface.major, surface.minor)
                syscalls.set_mode_at(directory, name, surface.mode)
            case File() | LiveFile() | StandIn():
                descriptor = syscalls.create(directory, name)
                try:
                    if isinstance(surface, File):
                        syscalls.write(descriptor, surface.content)
                    elif isinstance(surface, LiveFile):
                        syscalls.allocate(descriptor, surface.size)
                    syscalls.set_mode(descriptor, surface.mode)
                finally:
                    os.close(descriptor)
            case Directory():
                raise AssertionError("directories are the ledger's")

    def _placed(self, surface: Surface) -> Identity:
        if isinstance(surface, StandIn):
            directory, name = self._beneath.place(surface.path)
            try:
                self._mounts.cover(directory, name)
            except OSError:
                syscalls.remove(directory, name)
                raise
        return self.identity(surface)

    def _grow(self, directory: int, name: str, surface: LiveFile) -> None:
        descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            syscalls.allocate(descriptor, surface.size)
        finally:
            os.close(descriptor)

    def _drop(self, directory: int) -> None:
        with suppress(FileNotFoundError):
            syscalls.remove(directory, self._temporary)
