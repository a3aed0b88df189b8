"""What only statx(2) tells: which mount lies over a name, and when a file was born. Linux 5.8 for the former."""

from __future__ import annotations

import ctypes
import os
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_STATX_MNT_ID = 0x1000
_ATTRIBUTE_MOUNT_ROOT = 0x2000
# struct statx (linux/stat.h) is 256 bytes: stx_mask at 0, stx_attributes at 8, stx_btime at 0x50, stx_mnt_id at 0x90.
_SIZE = 256
_HEAD = struct.Struct("=IIQ")
_TIME, _TIME_AT = struct.Struct("=qI"), 0x50
_MOUNT_ID, _MOUNT_ID_AT = struct.Struct("=Q"), 0x90


def mount_over(directory: int, name: str) -> int | None:
    """The id of the mount whose root lies at `name`, 0 if none does; None if the kernel is too old to say."""
    answer = _asked(directory, name, _STATX_MNT_ID)
    mask, _, attributes = _HEAD.unpack_from(answer)
    if not mask & _STATX_MNT_ID:
        return None
    (mount,) = _MOUNT_ID.unpack_from(answer, _MOUNT_ID_AT)
    return int(mount) if attributes & _ATTRIBUTE_MOUNT_ROOT else 0


def birth(directory: int, name: str) -> int:
    """When the file was made, in ns; 0 on a file system that does not know."""
    answer = _asked(directory, name, _STATX_BTIME)
    mask, _, _ = _HEAD.unpack_from(answer)
    seconds, nanoseconds = _TIME.unpack_from(answer, _TIME_AT)
    return int(seconds * 1_000_000_000 + nanoseconds) if mask & _STATX_BTIME else 0


def _asked(directory: int, name: str, mask: int) -> ctypes.Array[ctypes.c_char]:
    answer = ctypes.create_string_buffer(_SIZE)
    if _LIBC.statx(directory, os.fsencode(name), _AT_SYMLINK_NOFOLLOW, mask, answer):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return answer
