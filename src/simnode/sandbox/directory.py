"""A node root for machines that refuse namespaces: a locked directory, removed at the end, swept by a later run if not.

The lock is on the directory itself and held by the launcher alone; whoever finds one unlocked knows that its run was
killed. One more lock, on the directory above, keeps making and sweeping apart.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "run-"


class UnsafeDirectory(Exception):
    """Raised when the place for node roots is not the caller's own; says which and what would be right."""


def place(environ: Mapping[str, str], uid: int, temporary: Path = Path("/tmp")) -> Path:
    """The directory that holds this user's node roots, by the environment's XDG_RUNTIME_DIR."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.access(runtime, os.W_OK | os.X_OK) and Path(runtime).stat().st_uid == uid:
        return Path(runtime) / "simnode"
    return temporary / f"simnode-{uid}"


@contextmanager
def locked_directory(above: Path, uid: int) -> Iterator[Path]:
    """Sweep what killed runs left in `above` and hold a fresh directory there to the end; raises UnsafeDirectory."""
    _own(above, uid)
    with _lock(above, fcntl.LOCK_EX):
        _sweep(above)
        mine = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        held = os.open(mine, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield mine
    finally:
        shutil.rmtree(mine, ignore_errors=True)
        os.close(held)
        with suppress(OSError):
            above.rmdir()


def _own(above: Path, uid: int) -> None:
    with suppress(FileExistsError):
        above.mkdir(mode=0o700)
    found = above.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise UnsafeDirectory(f"{above} must be a directory of uid {uid} with mode 0700")


def _sweep(above: Path) -> None:
    for left in above.glob(f"{_PREFIX}*"):
        with suppress(OSError), _lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _lock(directory: Path, how: int) -> Iterator[None]:
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, how)
        yield
    finally:
        os.close(held)
