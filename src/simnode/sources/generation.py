"""The number of the State in force: it rises with every accepted change, across restarts too, so a file keeps it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from simnode.profile.writing import create

_FORM = b"%019d\n"  # as long as any, so that a new number covers the old one whole


class Generation:
    """The number at `path`; `value` is the last one given out, 0 before the first. Blocks on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value: int | None = None

    @property
    def value(self) -> int:
        """The last number; what is no number in the file counts as 0."""
        if self._value is None:
            self._value = 0
            with suppress(OSError, ValueError):
                self._value = max(0, int(self._read()))
        return self._value

    def next(self) -> int:
        """One more, written down before anybody sees it. Raises OSError."""
        value = self.value + 1
        try:
            descriptor = create(self._path, os.O_WRONLY | os.O_NONBLOCK, 0o644)
            try:
                os.pwrite(descriptor, _FORM % value, 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise OSError(error.errno, f"cannot be written: {error.strerror}", str(self._path)) from None
        self._value = value
        return value

    def _read(self) -> bytes:
        """The number as it was written. Nobody's FIFO may hold the agent up."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 20) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        finally:
            os.close(descriptor)
