"""Archives of IMEX node software as they are published: one directory, the tools and papers below it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from simnode.state import IMEXSoftware

TOP = "nvidia-imex-linux-x86_64-595.91.07-archive"
DAEMON = b'#!/bin/sh\necho "nvidia-imex $*"\n'
CONTENT = {
    "LICENSE": b"a licence",
    "usr/bin/nvidia-imex": DAEMON,
    "usr/bin/nvidia-imex-ctl": b"#!/bin/sh\necho READY\n",
    "etc/nvidia-imex/config.cfg": b"SERVER_PORT=50000\n",
    "usr/lib/systemd/system/nvidia-imex.service": b"[Unit]\n",
}


def archive(path: Path, content: dict[str, bytes] | None = None, *others: tarfile.TarInfo) -> IMEXSoftware:
    """Write one with this content and other members; what a profile says of it."""
    with tarfile.open(path, "w:xz") as written:
        for name, data in (CONTENT if content is None else content).items():
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size = len(data)
            member.mode = 0o755
            written.addfile(member, io.BytesIO(data))
        for other in others:
            written.addfile(other)
    return software(path)


def software(path: Path) -> IMEXSoftware:
    """What a profile says of a file."""
    return IMEXSoftware(path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """A member without content."""
    made = tarfile.TarInfo(name)
    made.type = kind
    made.linkname = target
    return made
