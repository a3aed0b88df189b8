"""What of an archive of IMEX node software becomes files of the driver root; all else in it is passed over.

The archive is known by its checksum, yet only regular files by these names are taken, of bounded size: what a link in
it leads to, or a name with `..` in it, is nobody's to choose but ours.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from simnode.host import File, Link, Surface

LARGEST = 64 << 20
"""The most bytes of an archive, and of all that is taken from it."""
_MOST_INFLATED = 2 * LARGEST
_MEMBERS = 10_000
_LONGEST_MAGIC = 6
_UNREADABLE = (tarfile.TarError, EOFError, ValueError, RecursionError)
_DOCUMENTS = "driver/usr/share/doc/nvidia-imex"
_TAKEN = {
    "usr/bin/nvidia-imex": ("driver/usr/bin/nvidia-imex.real", 0o755),
    "usr/bin/nvidia-imex-ctl": ("driver/usr/bin/nvidia-imex-ctl", 0o755),
    "etc/nvidia-imex/config.cfg": ("driver/etc/nvidia-imex/config.cfg", 0o644),
    "LICENSE": (f"{_DOCUMENTS}/LICENSE", 0o644),
    "third-party-notices.txt": (f"{_DOCUMENTS}/third-party-notices.txt", 0o644),
}
_NEEDED = ("usr/bin/nvidia-imex", "usr/bin/nvidia-imex-ctl")
_STARTER = "driver/usr/libexec/nvidia-imex"
# Without GPUs the daemon serves only if it is told so. It stays the same process, which gets the signals.
_START = b"""\
#!/bin/sh
real="${0%/*}/../bin/nvidia-imex.real"
for word do
    case $word in --nogpu | -nogpu) exec "$real" "$@" ;; esac
done
exec "$real" "$@" --nogpu
"""


class ArchiveError(Exception):
    """Raised for an archive that is none, or that is not what it should be; one line."""


def opened(path: Path) -> BufferedReader:
    """The file, opened; what is no regular file is no archive, and nobody waits for what a FIFO may have to say."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ArchiveError("is a link") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ArchiveError("is no regular file")
    return os.fdopen(descriptor, "rb")


class _Inflated:
    """What is packed in a file, for one who reads it from beginning to end; there is an end to it."""

    def __init__(self, packed: BufferedReader) -> None:
        import bz2
        import gzip
        import lzma
        import zlib

        kinds: dict[bytes, Callable[[BufferedReader], BufferedIOBase]] = {
            b"\xfd7zXZ\0": lzma.LZMAFile,
            b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
            b"BZh": bz2.BZ2File,
        }
        start = packed.read(_LONGEST_MAGIC)
        packed.seek(0)
        kind = next((kind for magic, kind in kinds.items() if start.startswith(magic)), None)
        self._file: BufferedIOBase = kind(packed) if kind else packed
        self._broken = (lzma.LZMAError, zlib.error)
        self._left = _MOST_INFLATED

    def read(self, size: int) -> bytes:
        """The next bytes; raises ArchiveError for broken data, and past the most that is inflated."""
        try:
            piece = self._file.read(size)
        except self._broken as error:
            raise ArchiveError(f"is no archive that can be read: {error}") from None
        self._left -= len(piece)
        if self._left < 0:
            raise ArchiveError(f"holds more than {_MOST_INFLATED >> 20} MiB")
        return piece


def surfaces(path: Path) -> tuple[Surface, ...]:
    """The files, and the link by which the daemon is found: as links come last, nobody finds it before it is whole.

    Raises ArchiveError, or OSError if the archive cannot be read.
    """
    try:
        with opened(path) as packed, tarfile.open(fileobj=cast(BinaryIO, _Inflated(packed)), mode="r|") as archive:
            files = {name: File(_TAKEN[name][0], content, _TAKEN[name][1]) for name, content in _read(archive)}
    except _UNREADABLE as error:
        raise ArchiveError(f"is no archive that can be read: {error}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise ArchiveError(f"is no archive that can be read: {error}") from None  # bzip2's word for broken data
    missing = [member for member in _NEEDED if member not in files]
    if missing:
        raise ArchiveError(f"has no {missing[0]}")
    return (
        *files.values(),
        File(_STARTER, _START, 0o755),
        Link("driver/usr/bin/nvidia-imex", "../libexec/nvidia-imex"),
    )


def _read(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    left = LARGEST
    for count, member in enumerate(archive):
        if count >= _MEMBERS:
            raise ArchiveError(f"has more than {_MEMBERS} members")
        parts = member.name.removeprefix("./").split("/")
        if member.name.startswith("/") or ".." in parts:
            raise ArchiveError(f"has a member {member.name[:60]!r}, which leads out of it")
        name = "/".join(parts[1:])
        if name not in _TAKEN:
            continue
        content = archive.extractfile(member) if member.isfile() else None
        if content is None:
            raise ArchiveError(f"has {name} as something that is no regular file")
        left -= member.size
        if left < 0:
            raise ArchiveError(f"holds more than {LARGEST >> 20} MiB")
        yield name, content.read()
