"""The contract of a library that other programs load, checked in every build: what it imports, exports, needs, weighs.

The same file has to load in any process of any container: an old glibc, musl, no other library at hand. So it may use
only the C library's oldest names, and offers only those of its API.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Contract:
    """What is particular to one library: its SONAME, how the names begin that it offers, its bytes at most."""

    soname: str
    prefix: str
    bytes_at_most: int


NVML = Contract("libnvidia-ml.so.1", "nvml", 300 * 1024)
CUDA = Contract("libcuda.so.1", "cu", 200 * 1024)

GLIBC_AT_MOST = (2, 17)

# What the library may call: in glibc 2.17 and in musl, keeps no state of its own, starts no thread, takes no lock.
# fmt: off
IMPORTS = frozenset((
    "__errno_location", "access", "clock_gettime", "clock_nanosleep", "close", "dl_iterate_phdr", "faccessat",
    "getenv", "getpid", "memchr", "memcmp", "memcpy", "memmove", "memset", "mmap", "munmap", "nanosleep", "open",
    "openat", "pread", "read", "readlink", "realpath", "sched_yield", "secure_getenv", "snprintf", "strchr",
    "strcmp", "strlen", "strncmp", "strnlen", "strrchr", "strtol", "strtoul", "syscall", "vsnprintf",
))
# fmt: on
# Weak references that every linker start file makes; where they are absent they are not called.
WEAK = frozenset(("__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"))


def faults(library: Path, contract: Contract = NVML) -> list[str]:
    """Every way in which `library` breaks its contract, one line each; empty = it holds."""
    dynamic = _readelf(library, "-d")
    found = [f"needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if name != "libc.so.6"]
    if f"[{contract.soname}]" not in "".join(re.findall(r"\(SONAME\).*", dynamic)):
        found.append(f"its SONAME is not {contract.soname}")
    if "NODELETE" not in dynamic:
        found.append("it can be unloaded while handles point into it (no -z nodelete)")
    if "(TEXTREL)" in dynamic:
        found.append("it relocates its code")
    for name, version, defined in _symbols(library):
        if defined and not name.startswith(contract.prefix):
            found.append(f"exports {name}")
        if not defined:
            found.extend(_import_faults(name, version))
    if (size := library.stat().st_size) > contract.bytes_at_most:
        found.append(f"has {size} bytes, at most {contract.bytes_at_most} allowed")
    return found


def exports(library: Path) -> set[str]:
    """Names of the functions that `library` offers."""
    return {name for name, _, defined in _symbols(library) if defined}


def _import_faults(name: str, version: str) -> list[str]:
    if name in WEAK and not version:
        return []
    if name not in IMPORTS | WEAK:
        return [f"imports {name}, which is not in the allowed list of native/elf.py"]
    number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
    if number is None or (int(number[1]), int(number[2])) > GLIBC_AT_MOST:
        return [f"imports {name}@{version}, newer than glibc 2.17"]
    return []


def _symbols(library: Path) -> list[tuple[str, str, bool]]:
    """Name, version ("" = none) and whether it is defined here, for every global dynamic symbol."""
    found = []
    for line in _readelf(library, "--dyn-syms").splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[0].endswith(":"):
            name, _, version = fields[7].partition("@")
            found.append((name, version.lstrip("@"), fields[6] != "UND"))
    return found


def _readelf(library: Path, option: str) -> str:
    words = ["readelf", "-W", option, str(library)]
    return subprocess.run(words, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=True).stdout
