"""What of an archive of IMEX node software becomes files of the driver root; all else in it is passed over.

The archive is known by its checksum, yet only regular files by these names are taken, of bounded size: what a link in
it leads to, or a name with `..` in it, is nobody's to choose but ours.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from simnode.host import File, Link, Surface

LARGEST = 64 << 20
"""The most bytes of an archive, and of all that is taken from it."""
_MEMBERS = 10_000
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


def surfaces(path: Path) -> tuple[Surface, ...]:
    """The files, and the link by which the daemon is found: as links come last, nobody finds it before it is whole.

    Raises ArchiveError, or OSError if the archive cannot be read.
    """
    try:
        with tarfile.open(path, "r|*") as archive:
            files = {name: File(_TAKEN[name][0], content, _TAKEN[name][1]) for name, content in _read(archive)}
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ArchiveError(f"is no archive that can be read: {error}") from None
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
