"""What a process must be that brings a node up: one user, with a few files to spare."""

from __future__ import annotations

import os
import resource

_FILES = 256


class UnfitCaller(Exception):
    """Raised when this process cannot bring a node up; says why and what would be right."""


def check_caller() -> None:
    """Raises UnfitCaller."""
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        real, effective = f"{os.getuid()}:{os.getgid()}", f"{os.geteuid()}:{os.getegid()}"
        raise UnfitCaller(f"the real user {real} and the effective one {effective} differ: be one of them throughout")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < _FILES:
        raise UnfitCaller(f"no more than {files} files may be open: a node needs ulimit -n {_FILES}")
