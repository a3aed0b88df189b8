"""Texts of procfs with lines of ours: the machine's own stay as they are, and doing it twice is doing it once."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.host.procfs import holder, procfs, with_majors, with_modules

DEVICES = """\
Character devices:
  1 mem
  4 /dev/vc/0
  4 tty
234 nvidia-caps
254 ndctl

Block devices:
  7 loop
259 blkext
"""
MAJORS = ((195, "nvidia"), (236, "nvidia-caps"), (5, "x"))
NAMES = ("nvidia", "nvidia-caps", "x")
MODULES = "virtio_net 65536 0 - Live 0x0000000000000000\nnvidia 1 0 - Live 0x0\n"


def test_majors_come_behind_the_machines_own_character_devices() -> None:
    assert with_majors(DEVICES, MAJORS, NAMES) == DEVICES.replace("234 nvidia-caps\n", "").replace(
        "254 ndctl\n", "254 ndctl\n195 nvidia\n236 nvidia-caps\n  5 x\n"
    )


def test_a_machine_without_a_list_of_devices_has_ours_alone() -> None:
    assert with_majors("", MAJORS[:1], NAMES) == "Character devices:\n195 nvidia\n\nBlock devices:\n"


def test_modules_come_before_the_machines_own() -> None:
    ours = ("nvidia 62312448 0 - Live 0x0000000000000000 (OE)",)
    assert with_modules(MODULES, ours) == f"{ours[0]}\nvirtio_net 65536 0 - Live 0x0000000000000000\n"


def test_doing_it_twice_is_doing_it_once() -> None:
    devices, modules = with_majors(DEVICES, MAJORS, NAMES), with_modules(MODULES, ("nvidia 7",))
    assert with_majors(devices, MAJORS, NAMES) == devices
    assert with_modules(modules, ("nvidia 7",)) == modules


def test_what_was_ours_before_is_none_of_the_machines() -> None:
    assert with_majors(with_majors(DEVICES, MAJORS, NAMES), (), NAMES) == DEVICES.replace("234 nvidia-caps\n", "")


@pytest.mark.parametrize(
    ("major", "found"), [(4, "/dev/vc/0"), (259, "blkext"), (234, ""), (300, "")], ids=["char", "block", "ours", "free"]
)
def test_who_has_a_major(major: int, found: str) -> None:
    assert holder(DEVICES, major, ("nvidia-caps",)) == found


def test_what_the_kernel_does_not_have_is_empty(tmp_path: Path) -> None:
    (tmp_path / "devices").write_text(DEVICES)
    read = procfs(tmp_path)
    assert (read("devices"), read("modules")) == (DEVICES, "")
