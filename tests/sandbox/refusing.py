"""`python refusing.py CMD…`: runs CMD where the kernel refuses namespaces, as Docker's default seccomp filter does.

unshare, setns and clone for new namespaces answer EPERM, clone3 ENOSYS (its flags lie in memory, where
a filter cannot read them).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16
_NEW_NAMESPACES = 0x7E020000
# unshare, setns, clone, clone3 (the kernel's syscall tables)
_CALLS = {"x86_64": (272, 308, 56, 435), "aarch64": (97, 268, 220, 435)}


def _program(machine: str) -> bytes:
    unshare, setns, clone, clone3 = _CALLS[machine]
    steps = [
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 6, 0, unshare),
        (_EQUAL, 5, 0, setns),
        (_EQUAL, 5, 0, clone3),
        (_EQUAL, 0, 2, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def refuse_namespaces() -> None:
    """Install the filter in this process; what it executes keeps it."""
    program = _program(platform.machine())
    buffer = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, filters, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])
