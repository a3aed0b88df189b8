"""Take-over: the one case in which something that the engine did not make gives way to a surface.

Only a link does, and only to a directory that says so (`Directory.take_over`). A link to anything that is there, other
than what the surface names, belongs to somebody else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from simnode.host.paths import Beneath
from simnode.host.surfaces import Directory, Surface

_LIBC = ctypes.CDLL(None, use_errno=True)
_OPENAT2 = 437
# struct open_how (linux/openat2.h): flags, mode, resolve; 0x10 is RESOLVE_IN_ROOT, 0x02 RESOLVE_NO_MAGICLINKS
_HOW = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, 0x10 | 0x02)
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def gives_way(beneath: Beneath, path: str, found: os.stat_result, surface: Surface | None) -> bool:
    """True if `found`, which lies at `path`, is a link that `surface` takes over."""
    if not isinstance(surface, Directory) or surface.take_over is None or not stat.S_ISLNK(found.st_mode):
        return False
    directory, name = beneath.place(path)
    return os.readlink(name, dir_fd=directory) == surface.take_over or not _leads_somewhere(beneath, path)


def _leads_somewhere(beneath: Beneath, path: str) -> bool:
    """Follow the link as a program would to which the root is `/`; where the kernel refuses (before 5.6) assume so."""
    descriptor = _LIBC.syscall(_OPENAT2, beneath.directory(""), os.fsencode(path), _HOW, len(_HOW))
    if descriptor >= 0:
        os.close(descriptor)
        return True
    return ctypes.get_errno() not in _NOWHERE
