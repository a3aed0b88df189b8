"""The faces of the kernel modules: below sys/module, and in the texts that are bound over the kernel's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from simnode.host import Host
from simnode.partitions import MIGState
from simnode.simulators.gpudriver import DriverFiles, GPUDriver, Kernel
from simnode.state import IMEXState, State
from tests.simulators.states import FACTS, state

FILES = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi")
MACHINE = {
    "devices": "Character devices:\n  1 mem\n\nBlock devices:\n  7 loop\n",
    "modules": "loop 40960 0 - Live 0x0000000000000000\n",
}
OURS = ("nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm")


@pytest.fixture
def driver(tmp_path: Path) -> GPUDriver:
    return GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "none", "x86_64", Kernel(MACHINE.__getitem__))


def stage(driver: GPUDriver, *states: State) -> None:
    for each in states:
        asyncio.run(driver.stage(each, FACTS))


def modules(root: Path, attribute: str) -> list[str]:
    """What sysfs says of each module."""
    return [(root / "sys/module" / name / attribute).read_text().strip() for name in OURS]


def test_every_module_has_the_drivers_version_and_is_live(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(2))
    assert sorted(path.name for path in (tmp_path / "sys/module").iterdir()) == list(OURS)
    assert modules(tmp_path, "version") == ["550.163.01"] * 4
    assert modules(tmp_path, "initstate") == ["live"] * 4
    before = modules(tmp_path, "srcversion")
    assert len(set(before)) == 4
    assert all(len(text) == 24 and int(text, 16) for text in before)
    stage(driver, state(2, "580.65.06"))
    assert modules(tmp_path, "version") == ["580.65.06"] * 4
    assert not set(before) & set(modules(tmp_path, "srcversion"))


def test_who_uses_a_module_is_counted_alike_everywhere(driver: GPUDriver, tmp_path: Path) -> None:
    """A module's references are its holders, in sysfs as in the list of modules."""
    stage(driver, state(1))
    listed = {line.split()[0]: line.split() for line in (tmp_path / "proc/modules").read_text().splitlines()}
    assert tuple(listed) == ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", "loop")
    for name, references, size in zip(OURS, modules(tmp_path, "refcnt"), modules(tmp_path, "coresize"), strict=True):
        holders = sorted(path.name for path in (tmp_path / "sys/module" / name / "holders").iterdir())
        assert all((tmp_path / "sys/module" / name / "holders" / holder / "version").exists() for holder in holders)
        assert sorted(filter(None, listed[name][3].strip("-").split(","))) == holders
        assert listed[name][1:3] == [size, references] == [size, str(len(holders))]
    assert (tmp_path / "sys/module/nvidia/refcnt").read_text() == "2\n"


def test_bus_and_module_lead_to_each_other(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(1))
    bus = tmp_path / "sys/bus/pci/drivers/nvidia"
    assert (tmp_path / "sys/module/nvidia/drivers/pci:nvidia").resolve() == bus
    assert (bus / "module").resolve() == tmp_path / "sys/module/nvidia"


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (state(1), ["195 nvidia", "195 nvidia-modeset", "195 nvidiactl", "236 nvidia-caps", "510 nvidia-uvm"]),
        (state(1, "535.129.03"), ["195 nvidia-frontend", "236 nvidia-caps", "510 nvidia-uvm"]),
        (
            msgspec.structs.replace(state(1, "535.129.03"), imex=IMEXState(enabled=True, imex_major=9, caps_major=240)),
            ["195 nvidia-frontend", "  9 nvidia-caps-imex-channels", "240 nvidia-caps", "510 nvidia-uvm"],
        ),
        (
            msgspec.structs.replace(state(1, "535.129.03"), mig=MIGState(caps_major=241)),
            ["195 nvidia-frontend", "241 nvidia-caps", "510 nvidia-uvm"],
        ),
    ],
    ids=["550", "535", "IMEX", "another major"],
)
def test_the_majors_stand_among_the_machines_own(
    driver: GPUDriver, tmp_path: Path, wanted: State, lines: list[str]
) -> None:
    stage(driver, wanted)
    told = "".join(f"{line}\n" for line in ("Character devices:", "  1 mem", *lines, "", "Block devices:", "  7 loop"))
    assert (tmp_path / "proc/devices").read_text() == told


def test_what_is_bound_elsewhere_shows_every_change(driver: GPUDriver, tmp_path: Path) -> None:
    """A bind of a file shows an inode: the same one is written to, shorter texts too."""
    stage(driver, state(1))
    with (tmp_path / "proc/devices").open() as bound:
        stage(driver, msgspec.structs.replace(state(1), imex=IMEXState(enabled=True)))
        longer = bound.read()
        stage(driver, state(1))
        bound.seek(0)
        shorter = bound.read()
    assert "235 nvidia-caps-imex-channels\n" in longer
    assert shorter == longer.replace("235 nvidia-caps-imex-channels\n", "") == (tmp_path / "proc/devices").read_text()


def test_a_module_that_the_machine_loads_or_a_text_that_somebody_spoils_is_set_right(tmp_path: Path) -> None:
    texts = dict(MACHINE)
    driver = GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "none", "x86_64", Kernel(texts.__getitem__))
    stage(driver, state(1))
    right = (tmp_path / "proc/modules").read_text()
    assert not asyncio.run(driver.plan(state(1), FACTS))
    texts["modules"] += "vfat 1 0 - Live 0x0\n"
    assert asyncio.run(driver.plan(state(1), FACTS))
    stage(driver, state(1))
    assert (tmp_path / "proc/modules").read_text() == f"{right}vfat 1 0 - Live 0x0\n"
    (tmp_path / "proc/modules").write_text("nothing")
    assert asyncio.run(driver.plan(state(1), FACTS))
    stage(driver, state(1))
    assert (tmp_path / "proc/modules").read_text() == f"{right}vfat 1 0 - Live 0x0\n"


def test_modules_of_another_driver_leave_the_libraries_alone(driver: GPUDriver, tmp_path: Path) -> None:
    """As after an upgrade without a reboot."""
    upgraded = state(1, "580.65.06")
    skewed = msgspec.structs.replace(
        upgraded, software=msgspec.structs.replace(upgraded.software, loaded_version="550.163.01")
    )
    stage(driver, skewed)
    assert modules(tmp_path, "version") == ["550.163.01"] * 4
    proc = tmp_path / "driver/proc/driver/nvidia"
    assert "x86_64  550.163.01  Release Build" in (proc / "version").read_text()
    assert (tmp_path / "driver/usr/lib64/libnvidia-ml.so.1").resolve().name == "libnvidia-ml.so.580.65.06"


def test_the_number_of_imex_channels_is_a_parameter(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, msgspec.structs.replace(state(1), imex=IMEXState(enabled=True, channels=16)))
    assert "\nImexChannelCount: 16\n" in (tmp_path / "driver/proc/driver/nvidia/params").read_text()
