"""A node root for machines that refuse namespaces: a locked directory, removed at the end, swept by a later run if not.

The lock is on the directory itself and held by the launcher alone; whoever finds one unlocked knows that its run was
killed. One more lock, on the directory above, keeps making and sweeping apart. Where somebody else has taken the name
of the directory above, each run has one of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from simnode.sandbox.places import UnsafeDirectory, check_private, runtime_directory

__all__ = ["UnsafeDirectory", "locked_directory", "place"]

_PREFIX = "run-"
_SPLITTING = frozenset(":;$\n")  # ld.so(8): LD_LIBRARY_PATH splits at two of them and expands what follows the third


def place(environ: Mapping[str, str], uid: int, temporary: Path = Path("/tmp")) -> Path:
    """The directory that holds this user's node roots: in XDG_RUNTIME_DIR, if programs can be executed there."""
    runtime = runtime_directory(environ)
    if runtime is not None and runtime[1].st_uid == uid and _serves(runtime[0]):
        return Path(runtime[0]) / "simnode"
    return temporary / f"simnode-{uid}"


def _serves(runtime: str) -> bool:
    return _SPLITTING.isdisjoint(runtime) and not os.statvfs(runtime).f_flag & os.ST_NOEXEC


@contextmanager
def locked_directory(above: Path, uid: int) -> Iterator[Path]:
    """Sweep what killed runs left in `above` and hold a fresh directory there to the end.

    Where `above` is not this user's alone, it is made in a new directory beside it, and killed runs' are swept there.
    """
    try:
        mine, held = _claim(above, uid)
    except UnsafeDirectory:
        for left in above.parent.glob(f"{above.name}-*"):
            _sweep_private(left, uid)
        above = Path(tempfile.mkdtemp(prefix=f"{above.name}-", dir=above.parent))
        mine, held = _claim(above, uid)
    try:
        yield mine
    finally:
        _remove(mine)
        os.close(held)
        with suppress(OSError):
            above.rmdir()


def _claim(above: Path, uid: int) -> tuple[Path, int]:
    """A fresh directory and the descriptor that holds it locked; over again if a run that ends removes `above`."""
    while True:
        with suppress(FileExistsError):
            above.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            check_private(str(above), uid)
            with _lock(above, fcntl.LOCK_EX):
                _sweep(above)
                mine = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
                held = os.open(mine, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(held, fcntl.LOCK_EX)
                return mine, held


def _sweep(above: Path) -> None:
    for left in above.glob(f"{_PREFIX}*"):
        with suppress(OSError), _lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _remove(left)


def _sweep_private(above: Path, uid: int) -> None:
    with suppress(OSError, UnsafeDirectory):
        check_private(str(above), uid)
        with _lock(above, fcntl.LOCK_EX):
            _sweep(above)
        above.rmdir()


def _remove(directory: Path) -> None:
    """All of it, also what its owner has made unreadable; what is not this user's stays."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for above, names, _ in os.walk(directory):
            for name in names:
                path = Path(above, name)
                if not path.is_symlink():
                    with suppress(OSError):
                        path.chmod(0o700)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _lock(directory: Path, how: int) -> Iterator[None]:
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, how)
        yield
    finally:
        os.close(held)
