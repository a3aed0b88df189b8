"""Somebody who holds the staging lock without any manners."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


class Holder:
    """Holds the lock at `path` until told otherwise; the end of the process lets go, too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self.held = False

    def hold(self, how: int) -> None:
        """Take it (fcntl.LOCK_SH or LOCK_EX) if it is to be had at once."""
        self.release()
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
            self.held = True

    def release(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self.held = False
