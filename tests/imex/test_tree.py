"""What the IMEX simulator wants to be there, for which State, and which majors it cannot have."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from pathlib import Path

import msgspec
import pytest

from simnode.agent import Reports
from simnode.host import CharacterDevice, File, Host, StandIn, Tree, TreeError
from simnode.partitions import mig_cap
from simnode.simulators import Devices
from simnode.simulators.imex import IMEX, Software
from simnode.state import IMEXState, State
from tests.simulators.states import FACTS, state

CHANNELS = "driver/dev/nvidia-caps-imex-channels"
MACHINE = """\
Character devices:
  1 mem
 10 misc
226 drm
234 nvidia-caps
235 nvidia-caps-imex-channels

Block devices:
  7 loop
259 blkext
"""


def with_imex(**fields: int) -> State:
    """A node with IMEX on."""
    return msgspec.structs.replace(state(1), imex=msgspec.structs.replace(IMEXState(enabled=True), **fields))


def simulator(devices: Devices = "node", machine: str = MACHINE, root: str | Path = "/nonexistent") -> IMEX:
    software = Software(Path(root), Reports().report, logging.getLogger("tests.imex"))
    return IMEX(Host(root, boot_id="boot"), devices, {"devices": machine}.__getitem__, software)


def test_nothing_is_there_while_it_is_off() -> None:
    assert simulator().tree(state(1), FACTS) == Tree.empty


@pytest.mark.parametrize("count", [1, 2048])
def test_every_channel_is_a_device_whose_minor_is_its_number(count: int) -> None:
    wanted = simulator().tree(with_imex(channels=count, imex_major=500), FACTS)
    found = [surface for surface in wanted if surface.path.startswith(CHANNELS)]
    assert len(found) == count
    for number in (0, count - 1):
        path = f"{CHANNELS}/channel{number}"
        assert wanted.get(path) == CharacterDevice(path, 500, number, 0o666)


def test_without_leave_to_make_devices_a_channel_is_a_stand_in_or_nothing() -> None:
    channel = f"{CHANNELS}/channel0"
    assert simulator("stand-in").tree(with_imex(), FACTS).get(channel) == StandIn(channel, 0o666)
    assert simulator("none").tree(with_imex(), FACTS).get(channel) is None


def test_the_capability_has_the_kernel_modules_minor() -> None:
    """The one behind all of MIG's, wherever it is told."""
    wanted = simulator().tree(with_imex(caps_major=240), FACTS)
    minor = mig_cap(31, 14, 7).minor + 1
    assert minor == 4323
    device = f"driver/dev/nvidia-caps/nvidia-cap{minor}"
    assert wanted.get(device) == CharacterDevice(device, 240, minor, 0o666)
    told = f"DeviceFileMinor: {minor}\nDeviceFileMode: 438\nDeviceFileModify: 0\n".encode()
    for path, text in (
        ("driver/proc/driver/nvidia/capabilities/fabric-imex-mgmt", told),
        ("driver/proc/driver/nvidia-caps/sys-minors", f"fabric-imex-mgmt {minor}\n".encode()),
    ):
        assert wanted.get(path) == File(path, text, 0o444)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"imex_major": 226}, "imex.imex_major: 226 is the major of drm on this machine; give one that is free"),
        ({"caps_major": 226}, "imex.caps_major: 226 is the major of drm on this machine; give one that is free"),
        ({"imex_major": 259}, "imex.imex_major: 259 is the major of blkext on this machine; give one that is free"),
        (
            {"imex_major": 236},
            "imex.imex_major: 236 is imex.caps_major, too; each wants a major of its own",
        ),
    ],
    ids=["channels", "capabilities", "a block device's", "one for both"],
)
def test_a_major_that_somebody_has_is_refused(fields: dict[str, int], refusal: str) -> None:
    with pytest.raises(TreeError) as raised:
        simulator().tree_for_others(with_imex(**fields), FACTS)
    assert str(raised.value) == refusal
    assert raised.value.owner == "imex"


@pytest.mark.parametrize("machine", [MACHINE, ""], ids=["of an agent before us", "no list"])
def test_a_major_of_our_own_names_is_free(machine: str) -> None:
    assert simulator(machine=machine).tree(with_imex(imex_major=234, caps_major=235), FACTS)


@pytest.mark.parametrize(
    "after", [state(1), with_imex(channels=3), with_imex(channels=7, imex_major=501)], ids=["off", "fewer", "a major"]
)
def test_nothing_of_the_state_before_is_left(tmp_path: Path, after: State) -> None:
    devices: Devices = "node" if os.geteuid() == 0 else "none"
    (tmp_path / "changed").mkdir()
    (tmp_path / "fresh").mkdir()
    changed, fresh = (simulator(devices, root=tmp_path / name) for name in ("changed", "fresh"))
    for each in (with_imex(channels=7), after):
        asyncio.run(changed.stage(each, FACTS))
    asyncio.run(fresh.stage(after, FACTS))
    assert found(tmp_path / "changed") == found(tmp_path / "fresh")
    assert not asyncio.run(changed.plan(after, FACTS))


def found(root: Path) -> dict[str, tuple[int, int]]:
    """Mode and device number of everything in the root but the engine's own records."""
    paths = [path for path in root.rglob("*") if path.relative_to(root).parts[0] != "state"]
    statuses = {str(path.relative_to(root)): path.lstat() for path in paths}
    return {
        path: (status.st_mode, status.st_rdev if stat.S_ISCHR(status.st_mode) else 0)
        for path, status in statuses.items()
    }
