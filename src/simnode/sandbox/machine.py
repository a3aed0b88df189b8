"""What the launcher must know of the machine before it builds a node on it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from simnode.sandbox.reports import NodeFailed

# glibc maps as libc.so.6 (libc-2.31.so before 2.34), musl as ld-musl-<arch>.so.1 or libc.musl-<arch>.so.1.
_LIBC = re.compile(
    r"(/.*)?/(?:libc\.so\.6|libc-2\.\d+\.so|ld-musl-[^/]+\.so\.1|libc\.musl-[^/]+\.so\.1)(?: \(deleted\))?$"
)
_USUAL = ("usr/lib/{arch}-linux-gnu", "usr/lib64", "usr/lib", "lib")
_SYS_ADMIN, _MKNOD = 21, 27
_ALL_IDS = ["0", "0", "4294967295"]


class UnknownMachine(Exception):
    """Raised when a node cannot be laid over this machine; says what is missing."""


class Machine(Struct, frozen=True):
    """`library_directory` is where the C library lies and a loader therefore searches, `program_directory` /usr/bin.

    Both are resolved. `privileged`: root of the machine itself, able to mount and to make device nodes.
    """

    library_directory: str
    program_directory: str
    privileged: bool


def survey(root: Path = Path("/")) -> Machine:
    """Look at the machine below `root`; raises UnknownMachine, NodeFailed."""
    proc = root / "proc/self"
    try:
        maps, status, ids = ((proc / name).read_text() for name in ("maps", "status", "uid_map"))
    except OSError as error:
        raise NodeFailed(
            f"{error.filename} cannot be read ({error.strerror}): there is no node without /proc"
        ) from error
    return Machine(
        library_directory=_library_directory(maps, root),
        program_directory=os.path.realpath(root / "usr/bin"),
        privileged=_privileged(status, ids),
    )


def _library_directory(maps: str, root: Path) -> str:
    for line in maps.splitlines():
        found = _LIBC.search(line)
        if found:
            directory = found[1] or _usual_directory(os.path.basename(found[0].split()[0]), root)  # noqa: PTH119
            if set(directory) & set(":,\\ "):
                raise UnknownMachine(f"the library directory {directory} has a character that an overlay cannot name")
            return directory
    raise UnknownMachine("this interpreter maps no C library, so the loader's directory is unknown")


def _usual_directory(name: str, root: Path) -> str:
    """Where `name` lies; from an overlay on an overlay the kernel maps it without its directory."""
    for usual in _USUAL:
        directory = root / usual.format(arch=os.uname().machine)
        if (directory / name).exists():
            return os.path.realpath(directory)
    raise UnknownMachine(f"this interpreter maps {name} from nowhere, so the loader's directory is unknown")


def _privileged(status: str, uid_map: str) -> bool:
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    effective = int(fields["CapEff"], 16)
    capable = all(effective >> capability & 1 for capability in (_SYS_ADMIN, _MKNOD))
    return fields["Uid"].split()[1] == "0" and capable and uid_map.split() == _ALL_IDS
