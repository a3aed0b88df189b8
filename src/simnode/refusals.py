"""How a system call that the kernel refused reads on one line. No import but os: thin clients use it."""

from __future__ import annotations

import os


def told(error: OSError) -> str:
    """What it was about, where the kernel was given a path, and why; without Python's "[Errno 13]"."""
    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error.filename, (str, bytes, os.PathLike)):
        return f"{os.fsdecode(error.filename)}: {reason}"
    return reason
