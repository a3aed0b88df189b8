"""Whether a host has a real NVIDIA driver; who only asks that must not pay for all that keeps a node."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def real_driver(root: Path) -> str:
    """What shows that the host has a real NVIDIA driver, "" if nothing does.

    The driver's file in the kernel's own procfs does (in a simulated node something else lies over that place), and so
    does a character device of its major in the host's /dev, where no agent puts any.
    """
    seen = root if (root / "proc/version").exists() else Path("/")
    version = seen / "proc/driver/nvidia/version"
    with contextlib.suppress(OSError):
        if version.stat().st_dev == (seen / "proc").stat().st_dev:
            return str(version)
    for device in sorted((root / "dev").glob("nvidia*")):
        with contextlib.suppress(OSError):
            found = device.lstat()
            if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) == 195:
                return str(device)
    return ""
