"""Where tests put what an agent works on: in memory, where there is room and programs can be executed, else on disk.

A file system on a disk takes twice as long over the thousands of files that are made, replaced and taken away.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARED_MEMORY = "/dev/shm"
ROOM_BYTES = 1 << 30


def place() -> str | None:
    """The directory in memory, or None: a container's is often small, or nothing can be executed there."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    fit = found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC
    return SHARED_MEMORY if fit and os.access(SHARED_MEMORY, os.W_OK) else None


@contextmanager
def directory(prefix: str) -> Iterator[Path]:
    """An empty directory there, of whoever runs the tests; it is gone in the end."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place()) as made:
        yield Path(made)
