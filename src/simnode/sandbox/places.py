"""Where a user's nodes are kept track of, and the rule that such a directory is nobody else's."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping


class UnsafeDirectory(Exception):
    """Raised when the place for nodes is not the caller's own; says which and what would be right."""


def runtime_directory(environ: Mapping[str, str]) -> tuple[str, os.stat_result] | None:
    """XDG_RUNTIME_DIR and what it is, if it is set and usable."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if not runtime.startswith("/") or not os.access(runtime, os.W_OK | os.X_OK):
        return None
    return runtime, os.stat(runtime)  # noqa: PTH116 (pathlib costs a thin client 10 ms)


def place(environ: Mapping[str, str], uid: int, temporary: str = "/tmp") -> str:
    """The directory that holds this user's named nodes, a file for each."""
    runtime = runtime_directory(environ)
    if runtime is not None and runtime[1].st_uid == uid:
        return f"{runtime[0]}/simnode"
    return f"{temporary}/simnode-{uid}"


def check_private(directory: str, uid: int) -> None:
    """Raise UnsafeDirectory unless `directory` is one, and no link, of `uid`'s own; OSError if it is not there."""
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise UnsafeDirectory(
            f"{directory} must be a directory of uid {uid} with mode 0700; XDG_RUNTIME_DIR can name another place"
        )
