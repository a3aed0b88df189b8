"""The kernel's log as far as the driver writes it: the NVRM lines of XIDs, in a file of the node.

Health agents read XIDs there and not from NVML. The lines have the form of the driver's (who identifies the GPU in a
line of its own before its first XID); what stands behind the number is an example of what it may say. The file is of
bounded size: once it is full its older half goes. The machine's own log, /dev/kmsg, gets the lines too if it is given.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from simnode.host import livetexts
from simnode.host.paths import Beneath
from simnode.host.procfs import Procfs, procfs
from simnode.state import DeviceRuntime, DeviceSpec

LOG = "log/kernel.log"
MOST = 256 << 10
"""The most bytes that the file has."""
_ERROR = "<3>"

_FALLEN = 79
_BY_PROGRAM = frozenset({13, 31, 43, 45, 68, 69, 94, 109})
_TEXTS = {
    13: "Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address",
    31: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f00_00000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: "Ch 00000008, engmask 00000101",
    45: "Ch 00000008",
    48: "DBE (double bit error) detected on FBPA 0, subpartition 0",
    63: "Row remapper: new record for bank 0x00000000, row 0x00000000",
    64: "Row remapper: no record could be made for bank 0x00000000, row 0x00000000",
    74: "NVLink: fatal error detected on link 0(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    _FALLEN: "GPU has fallen off the bus.",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    109: "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x4c005",
    119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
    120: "GSP task exception: load access fault",
    149: "NETIR Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000)",
    154: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
}


class Kernel(Struct, frozen=True):
    """The machine's kernel: its procfs, its clock (seconds since boot) and, to write to, its log ("": left alone)."""

    procfs: Procfs = lambda _: ""
    uptime: Callable[[], float] = lambda: 0.0
    kmsg: str = ""


NO_KERNEL = Kernel()
"""One that has nothing to say."""


def machine_kernel(kmsg: str = "") -> Kernel:
    """The kernel of the machine that this process runs on."""
    return Kernel(procfs(), partial(time.clock_gettime, time.CLOCK_MONOTONIC), kmsg)


def xid_lines(device: DeviceSpec, runtime: DeviceRuntime, number: int) -> list[str]:
    """What the driver says when the GPU raises an XID."""
    place = device.pci_bus_id.rpartition(".")[0]
    program = ""
    if number in _BY_PROGRAM:
        process = next(iter(runtime.processes), None)
        program = f"pid={process.pid}, name={process.name}, " if process else "pid='<unknown>', name=<unknown>, "
    lines = [f"NVRM: Xid (PCI:{place}): {number}, {program}{_TEXTS.get(number, 'GPU error')}"]
    if number == _FALLEN:
        lines.append(f"NVRM: GPU {device.pci_bus_id}: {_TEXTS[_FALLEN]}")
        lines += [f"NVRM: GPU {device.pci_bus_id}: GPU serial number is {device.serial}."] if device.serial else []
    return lines


class KernelLog:
    """The log of the node whose root is `root`; its file is a surface of the driver's. Blocks on the disk."""

    def __init__(self, root: Path, kernel: Kernel) -> None:
        self._root = root
        self._kernel = kernel

    def xid(self, device: DeviceSpec, runtime: DeviceRuntime, number: int) -> None:
        """Write the lines of an XID. Where that fails they are lost, as in a kernel whose log nobody can read."""
        with suppress(OSError):
            known = self._read()
            self._write(known, [*_introduced(device, known), *xid_lines(device, runtime, number)])

    def _read(self) -> str:
        """The end of what the file holds, be it as large as others have made it. Nobody's FIFO is waited for."""
        with Beneath(self._root) as beneath, os.fdopen(beneath.open(LOG), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "is no regular file", LOG)
            file.seek(max(0, status.st_size - MOST))
            return file.read(MOST).decode(errors="replace")

    def _write(self, known: str, lines: list[str]) -> None:
        moment = self._kernel.uptime()
        text = known + "".join(f"[{moment:12.6f}] {_printable(line)}\n" for line in lines)
        if len(text) > MOST:
            text = text[-MOST // 2 :].partition("\n")[2]
        livetexts.write(self._root, {LOG: text.encode()})
        if self._kernel.kmsg:
            for line in lines:
                _tell(self._kernel.kmsg, _printable(line))


def _introduced(device: DeviceSpec, known: str) -> list[str]:
    """Which GPU it is, unless the log says so already."""
    named = f"NVRM: GPU at PCI:{device.pci_bus_id.rpartition('.')[0]}: {device.uuid}"
    if f"{named}\n" in known:
        return []
    return [named, *([f"NVRM: GPU Board Serial Number: {device.serial}"] if device.serial else [])]


def _printable(line: str) -> str:
    """One line, whatever a profile calls its processes."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in line)


def _tell(kmsg: str, line: str) -> None:
    """One write is one record of the kernel's log; a log that takes nothing now loses it."""
    descriptor = os.open(kmsg, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{_ERROR}{line}\n".encode())
    finally:
        os.close(descriptor)
