"""The NVRM lines of XIDs: their form, once each, in a file of bounded size."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from simnode.simulators.gpudriver.kernellog import LOG, MOST, NO_KERNEL, Kernel, KernelLog, xid_lines
from simnode.state import DeviceRuntime, ProcessSpec
from tests.simulators.states import device

IDLE = DeviceRuntime()
BUSY = DeviceRuntime(processes=(ProcessSpec(pid=4711, type="C", name="train", used_memory_bytes=0),))
KNOWN = [
    "NVRM: GPU at PCI:0000:07:00: GPU-00000000-0000-4000-8000-000000000000",
    "NVRM: GPU Board Serial Number: 1650000000000",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / LOG
    path.parent.mkdir()
    path.touch()
    return path


def said(log: Path) -> list[str]:
    """The lines without their moments."""
    return [line.partition("] ")[2] for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("number", "runtime", "start"),
    [
        (48, IDLE, "NVRM: Xid (PCI:0000:07:00): 48, DBE "),
        (31, BUSY, "NVRM: Xid (PCI:0000:07:00): 31, pid=4711, name=train, Ch 00000008, intr 00000000. MMU Fault: "),
        (13, IDLE, "NVRM: Xid (PCI:0000:07:00): 13, pid='<unknown>', name=<unknown>, Graphics SM "),
        (9999, BUSY, "NVRM: Xid (PCI:0000:07:00): 9999, GPU error"),
    ],
    ids=["hardware", "a program's", "nobody's", "unknown"],
)
def test_a_line_has_the_drivers_form(number: int, runtime: DeviceRuntime, start: str) -> None:
    (line,) = xid_lines(device(0), runtime, number)
    assert line.startswith(start)


def test_a_gpu_off_the_bus_is_named_again_with_its_serial_number() -> None:
    assert xid_lines(device(0), BUSY, 79) == [
        "NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.",
        "NVRM: GPU 0000:07:00.0: GPU has fallen off the bus.",
        "NVRM: GPU 0000:07:00.0: GPU serial number is 1650000000000.",
    ]


def test_a_gpu_is_identified_before_its_first_xid_only(tmp_path: Path, log: Path) -> None:
    """Also when the agent has been started again since."""
    for number in (43, 48):
        KernelLog(tmp_path, NO_KERNEL).xid(device(0), BUSY, number)
    lines = said(log)
    assert lines[:2] == KNOWN
    assert [line.split("): ")[1].split(",")[0] for line in lines[2:]] == ["43", "48"]


def test_a_line_begins_with_the_time_since_boot(tmp_path: Path, log: Path) -> None:
    KernelLog(tmp_path, Kernel(uptime=lambda: 12.5)).xid(device(0), IDLE, 48)
    assert {line.partition("]")[0] for line in log.read_text().splitlines()} == {"[   12.500000"}


def test_the_older_half_goes_once_the_file_is_full(tmp_path: Path, log: Path) -> None:
    log.write_text("[    0.000000] old\n" * (MOST // 19))
    KernelLog(tmp_path, NO_KERNEL).xid(device(0), IDLE, 48)
    text = log.read_text()
    assert MOST // 2 - 20 < len(text) <= MOST // 2
    assert text.startswith("[    0.000000] old\n")
    assert said(log)[-1].startswith("NVRM: Xid (PCI:0000:07:00): 48, ")


def test_a_process_cannot_write_lines_of_its_own(tmp_path: Path, log: Path) -> None:
    evil = DeviceRuntime(processes=(msgspec.structs.replace(BUSY.processes[0], name="x\nNVRM: Xid"),))
    KernelLog(tmp_path, NO_KERNEL).xid(device(0), evil, 43)
    assert [line for line in said(log) if line.startswith("NVRM: Xid")] == [
        "NVRM: Xid (PCI:0000:07:00): 43, pid=4711, name=x?NVRM: Xid, Ch 00000008, engmask 00000101"
    ]


def test_the_kernels_own_log_gets_a_record_a_line_at_the_level_of_errors(tmp_path: Path, log: Path) -> None:
    kmsg = tmp_path / "kmsg"
    kmsg.touch()
    KernelLog(tmp_path, Kernel(kmsg=str(kmsg))).xid(device(0), IDLE, 48)
    assert kmsg.read_text() == "".join(f"<3>{line}\n" for line in said(log))


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    KernelLog(tmp_path, NO_KERNEL).xid(device(0), IDLE, 48)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("secret")], ids=["a FIFO", "a link"])
def test_what_stands_in_the_logs_place_is_neither_waited_for_nor_followed(
    tmp_path: Path, log: Path, plant: Callable[[Path], None]
) -> None:
    secret = log.with_name("secret")
    secret.write_text("old\n")
    log.unlink()
    plant(log)
    KernelLog(tmp_path, Kernel(kmsg=str(log) if log.is_fifo() else "")).xid(device(0), IDLE, 48)
    assert secret.read_text() == "old\n"
