"""What the launcher must know of the machine before it builds a node on it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# glibc maps as libc.so.6 (libc-2.31.so before 2.34), musl as ld-musl-<arch>.so.1 or libc.musl-<arch>.so.1.
_LIBC = re.compile(
    r"(/.*)/(?:libc\.so\.6|libc-2\.\d+\.so|ld-musl-[^/]+\.so\.1|libc\.musl-[^/]+\.so\.1)(?: \(deleted\))?$"
)
_SYS_ADMIN, _MKNOD = 21, 27
_ALL_IDS = ["0", "0", "4294967295"]


class UnknownMachine(Exception):
    """Raised when a node cannot be laid over this machine; says what is missing."""


@dataclass(frozen=True)
class Machine:
    """`library_directory` is where the C library lies and a loader therefore searches, `program_directory` /usr/bin.

    Both are resolved. `privileged`: root of the machine itself, able to mount and to make device nodes.
    """

    library_directory: str
    program_directory: str
    privileged: bool


def survey(root: Path = Path("/")) -> Machine:
    """Look at the machine below `root`; raises UnknownMachine."""
    proc = root / "proc/self"
    return Machine(
        library_directory=_library_directory((proc / "maps").read_text()),
        program_directory=os.path.realpath(root / "usr/bin"),
        privileged=_privileged((proc / "status").read_text(), (proc / "uid_map").read_text()),
    )


def _library_directory(maps: str) -> str:
    for line in maps.splitlines():
        found = _LIBC.search(line)
        if found:
            directory = found[1]
            if set(directory) & set(":,\\ "):
                raise UnknownMachine(f"the library directory {directory} has a character that an overlay cannot name")
            return directory
    raise UnknownMachine("this interpreter maps no C library, so the loader's directory is unknown")


def _privileged(status: str, uid_map: str) -> bool:
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    effective = int(fields["CapEff"], 16)
    capable = all(effective >> capability & 1 for capability in (_SYS_ADMIN, _MKNOD))
    return fields["Uid"].split()[1] == "0" and capable and uid_map.split() == _ALL_IDS
