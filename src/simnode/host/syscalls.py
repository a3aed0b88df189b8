"""Every system call by which the engine changes a file system or a mount, and nothing else.

They are gathered here so that a test can end the process before and after each of them; no other module of this room
may change anything. All take a directory descriptor and one name, and none follows a link in that name.
"""

from __future__ import annotations

import ctypes
import errno
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_RENAME_NOREPLACE = 1
_MS_BIND = 4096
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8


def create(directory: int, name: str) -> int:
    """Make a file that is not there yet; the descriptor to write it through, close-on-exec."""
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)


def write(descriptor: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def allocate(descriptor: int, size: int) -> None:
    """Make sure of `size` bytes of space, zero where nothing was written; the file never shrinks."""
    if size:
        os.posix_fallocate(descriptor, 0, size)


def truncate(descriptor: int, size: int) -> None:
    """Cut the file off behind `size` bytes."""
    os.ftruncate(descriptor, size)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the permission bits, whatever the umask."""
    os.fchmod(descriptor, mode)


def set_mode_at(directory: int, name: str, mode: int) -> None:
    """Set the permission bits of something that need not be readable; a link is refused, not followed."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.chmod(_magic(descriptor), mode)  # noqa: PTH101
    finally:
        os.close(descriptor)


def make_directory(directory: int, name: str) -> None:
    """Make a directory that only its owner may enter until its mode is set."""
    os.mkdir(name, 0o700, dir_fd=directory)


def remove_directory(directory: int, name: str) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=directory)


def remove(directory: int, name: str) -> None:
    """Remove anything but a directory."""
    os.unlink(name, dir_fd=directory)


def make_link(directory: int, name: str, target: str) -> None:
    """Make a symbolic link."""
    os.symlink(target, name, dir_fd=directory)


def make_device(directory: int, name: str, major: int, minor: int) -> None:
    """Make a character device; its mode is set afterwards, because the umask clips this one."""
    os.mknod(name, 0o020600, os.makedev(major, minor), dir_fd=directory)


def rename(directory: int, old: str, new: str) -> None:
    """Put `old` in the place of `new`, in one step."""
    os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)


def rename_new(directory: int, old: str, new: str) -> None:
    """Give `old` the name `new`, unless that is taken (EEXIST)."""
    try:
        _checked(_LIBC.renameat2(directory, os.fsencode(old), directory, os.fsencode(new), _RENAME_NOREPLACE), new)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        # Some file systems (NFS, FUSE) do not know the flag; hard links have the same guarantee but not for every kind.
        if _is_there(directory, new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        rename(directory, old, new)


def bind(source: str, directory: int, name: str) -> None:
    """Mount `source` over the file `name`."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        _checked(
            _LIBC.mount(os.fsencode(source), _magic(descriptor).encode(), None, ctypes.c_ulong(_MS_BIND), None), name
        )
    finally:
        os.close(descriptor)


def unbind(directory: int, name: str) -> None:
    """Take the topmost mount off `name`, also while somebody uses it."""
    _checked(_LIBC.umount2(os.fsencode(f"{_magic(directory)}/{name}"), _MNT_DETACH | _UMOUNT_NOFOLLOW), name)


def _is_there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _magic(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _checked(result: int, name: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
