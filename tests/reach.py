"""Lets an ordinary user reach the checkout while root runs the suite, wherever root put it (often a home of mode 0700).

Half of the suite drops its uid and then executes files of the checkout. Modes outside are not ours to change, so the
test process gets mounts of its own in which the closed directory is an open, empty one that holds just what is needed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


class Unreachable(Exception):
    """Raised when the ordinary user cannot be let in; says which directory is closed and what to do."""


def open_up(needed: Iterable[Path]) -> None:
    """Make every directory of `needed` reachable for others in this process and its children. Root only."""
    paths = sorted({path.resolve() for path in needed if path.exists()})
    for path in paths:
        if not _open(path):
            raise Unreachable(f"{path} is closed to ordinary users; chmod -R go+rX {path}")
    closed = sorted({gate for path in paths for gate in [_gate(path)] if gate})
    if not closed:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) or libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None):
        raise Unreachable(f"{closed[0]} is closed to ordinary users; clone to another place or chmod o+x {closed[0]}")
    for gate in closed:
        inside = [(path, os.open(path, os.O_PATH)) for path in paths if path.is_relative_to(gate)]
        _check(libc.mount(b"tmpfs", bytes(gate), b"tmpfs", 0, b"mode=755"), gate)
        for path, descriptor in inside:
            if not path.exists():
                path.mkdir(parents=True)
                source = f"/proc/self/fd/{descriptor}".encode()
                _check(libc.mount(source, bytes(path), None, _MS_BIND | _MS_REC, None), path)
            os.close(descriptor)
    os.chdir(Path.cwd())


def _gate(path: Path) -> Path | None:
    """The topmost directory above `path` that others cannot pass."""
    return next((parent for parent in reversed(path.parents) if not _open(parent)), None)


def _open(directory: Path) -> bool:
    return bool(directory.stat().st_mode & 0o001)


def _check(result: int, target: Path) -> None:
    if result:
        raise Unreachable(f"{target}: cannot be mounted: {os.strerror(ctypes.get_errno())}")
