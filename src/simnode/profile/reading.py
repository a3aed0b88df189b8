"""The bytes of a profile's file: a regular file of a sane size, read without ever blocking.

Refused: directories, FIFOs, sockets and devices (a read could wait for ever or have effects), and files over
`MAX_BYTES`.
"""

from __future__ import annotations

import os
import stat

from simnode.profile.faults import Fault, ProfileError

MAX_BYTES = 4 << 20

_KINDS = {
    stat.S_IFDIR: "is a directory",
    stat.S_IFIFO: "is a FIFO",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFCHR: "is a device",
    stat.S_IFBLK: "is a device",
}


def read(path: str) -> bytes:
    """What the file holds. Raises ProfileError with one fault."""
    try:
        _refuse(path, os.stat(path))  # noqa: PTH116  before open: opening a device may have effects
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            _refuse(path, os.fstat(descriptor))
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)
        raise ProfileError((Fault(path, "", None, reason[0].lower() + reason[1:]),)) from None
    if len(raw) > MAX_BYTES:
        raise ProfileError((_too_large(path),))
    return raw


def _refuse(path: str, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "is no regular file")
        raise ProfileError((Fault(path, "", None, f"{what}; a profile is a regular file"),))
    if status.st_size > MAX_BYTES:
        raise ProfileError((_too_large(path),))


def _too_large(path: str) -> Fault:
    return Fault(path, "", None, f"is larger than {MAX_BYTES >> 20} MiB; a profile has a few hundred lines")
