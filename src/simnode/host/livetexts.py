"""Texts that are written in place: what is bound over a file elsewhere shows the file's inode, never its successor.

The surface is a LiveFile without a size; the engine keeps it there and looks at nothing in it. A reader may see the
text while it is being written, for as long as that takes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from simnode.host import syscalls
from simnode.host.paths import Beneath


def differ(root: Path, texts: Mapping[str, bytes]) -> bool:
    """True if a file below `root` holds something else than its text. Raises OSError."""
    with Beneath(root) as beneath:
        return any(not _holds(beneath, path, text) for path, text in texts.items())


def write(root: Path, texts: Mapping[str, bytes]) -> None:
    """Make the files below `root`, which are there, hold these texts; those that do are not touched.

    Raises OSError, which names the path.
    """
    with Beneath(root) as beneath:
        for path, text in texts.items():
            try:
                if not _holds(beneath, path, text):
                    _write(beneath, path, text)
            except OSError as error:
                raise OSError(error.errno, f"cannot write it: {error.strerror}", path) from None


def _write(beneath: Beneath, path: str, text: bytes) -> None:
    directory, name = beneath.place(path)
    descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        syscalls.write(descriptor, text)
        syscalls.truncate(descriptor, len(text))
    finally:
        os.close(descriptor)


def _holds(beneath: Beneath, path: str, text: bytes) -> bool:
    """True if the file holds the text and no more, however much somebody made it hold."""
    with os.fdopen(beneath.open(path), "rb") as file:
        return file.read(len(text) + 1) == text
