"""What the engine can refuse, one class for each reason; every text is one line that names the path."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from msgspec import Struct

_PRIVILEGES = {"character device": "CAP_MKNOD, root's outside a user namespace", "stand-in": "CAP_SYS_ADMIN"}


class TreeError(ValueError):
    """Raised while a surface or a tree is made: an unsafe path, a duplicate, something below a file.

    `owner`: whose tree it is where somebody else asked for it, else "".
    """

    owner = ""


class OwnerBusyError(RuntimeError):
    """Raised by `Host.converge` when another thread is converging the same owner."""


class SurfaceError(Struct, frozen=True):
    """What went wrong with one surface, directory or record.

    `path` is relative to the root, `kind` a surface's kind, "journal", "ledger" or "record"; `errno` is None where no
    system call failed (an occupied path).
    """

    path: str
    kind: str
    errno: int | None
    message: str

    @classmethod
    def of(cls, path: str, kind: str, error: OSError, doing: str) -> SurfaceError:
        """The failed call `error`, met while `doing` ("create", "remove" …)."""
        text = f"cannot {doing} {kind}: {error.strerror or error}"
        if error.errno == errno.EPERM and kind in _PRIVILEGES:
            text += f" (it takes {_PRIVILEGES[kind]})"
        return cls(path, kind, error.errno, text)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ConvergeError(Exception):
    """Raised by `Host.converge` once everything that did not depend on a failure has been done.

    `errors` holds all failures, sorted by path.
    """

    def __init__(self, owner: str, errors: Iterable[SurfaceError]) -> None:
        self.owner = owner
        self.errors = tuple(sorted(errors, key=lambda error: (error.path, error.message)))
        super().__init__(f"{owner}: " + "; ".join(map(str, self.errors)))
