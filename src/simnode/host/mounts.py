"""Mounts over single files: how a stand-in shows /dev/null, and how one knows its mount again."""

from __future__ import annotations

import errno
import os
import stat
from functools import cached_property

from simnode.host import syscalls
from simnode.host.statx import mount_over

_STACKED_AT_MOST = 16


class Mounts:
    """The system's mounts; `source` is what a stand-in shows."""

    def __init__(self, source: str = "/dev/null") -> None:
        self._source = source

    def over(self, directory: int, name: str) -> int:
        """The id of the mount whose root lies at `name`, 0 if none does.

        Raises OSError: ENOSYS on a kernel before 5.8, else as stat does.
        """
        mount = mount_over(directory, name)
        if mount is None:
            raise OSError(errno.ENOSYS, "stand-ins need Linux 5.8 or later", name)
        return mount

    def shows(self, found: os.stat_result) -> bool:
        """True if `found` is what a stand-in shows."""
        return stat.S_ISCHR(found.st_mode) and found.st_rdev == self._number

    @cached_property
    def _number(self) -> int:
        return os.stat(self._source).st_rdev  # noqa: PTH116

    def cover(self, directory: int, name: str) -> None:
        """Mount the source over the file `name`."""
        syscalls.bind(self._source, directory, name)

    def uncover(self, directory: int, name: str) -> None:
        """Take the source off `name`, however often it was mounted there; anything else mounted there stays."""
        for _ in range(_STACKED_AT_MOST):
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not self.shows(found) or not self.over(directory, name):
                return
            syscalls.unbind(directory, name)
