"""The capabilities of partitioned GPUs: all of what is there, and nothing where nothing is partitioned."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from simnode.host import CharacterDevice, ConvergeError, Host, StandIn, Tree, TreeError
from simnode.simulators import Devices
from simnode.simulators.migcaps import MIGCaps
from simnode.state import State
from tests.mig.documents import compiled, named
from tests.simulators.states import FACTS

CAPABILITIES = "driver/proc/driver/nvidia/capabilities"
MINORS = "driver/proc/driver/nvidia-caps/mig-minors"
ONE = f"{{caps_major: 240, gpus: [{{index: 1, gpu_instances: [{named('3g.40gb')}]}}]}}"
OTHER = f"{{gpus: [{{index: 0, gpu_instances: [{named('1g.10gb', '1g.10gb')}]}}]}}"


PROC_DEVICES = "Character devices:\n  1 mem\n 10 misc\n236 nvidia-caps\n\nBlock devices:\n  7 loop\n"


def simulator(root: Path, devices: Devices = "none") -> MIGCaps:
    return MIGCaps(Host(root, boot_id="boot"), devices, lambda _: PROC_DEVICES)


def found(root: Path) -> set[str]:
    """Files below the root, the engine's own records left out."""
    below = (path.relative_to(root) for path in root.rglob("*") if not path.is_dir())
    return {str(path) for path in below if path.parts[0] != "state"}


def test_the_tree_of_one_instance(tmp_path: Path) -> None:
    tree = simulator(tmp_path, "node").tree(compiled("h100", ONE), FACTS)
    devices = {path: tree.get(path) for path in tree.paths if path.startswith("driver/dev")}
    assert devices == {
        f"driver/dev/nvidia-caps/nvidia-cap{minor}": CharacterDevice(
            f"driver/dev/nvidia-caps/nvidia-cap{minor}", 240, minor, mode
        )
        for minor, mode in ((1, 0o400), (2, 0o444), (156, 0o444), (157, 0o444))
    }
    assert set(tree.paths) - set(devices) == {
        MINORS,
        f"{CAPABILITIES}/mig/config",
        f"{CAPABILITIES}/mig/monitor",
        f"{CAPABILITIES}/gpu1/mig/gi2/access",
        f"{CAPABILITIES}/gpu1/mig/gi2/ci0/access",
    }


@pytest.mark.parametrize(
    ("name", "minor", "mode"),
    [("mig/config", 1, 256), ("mig/monitor", 2, 292), ("gpu1/mig/gi2/access", 156, 292),
     ("gpu1/mig/gi2/ci0/access", 157, 292)],
)  # fmt: skip
def test_a_capability_tells_its_device(tmp_path: Path, name: str, minor: int, mode: int) -> None:
    asyncio.run(simulator(tmp_path).stage(compiled("h100", ONE), FACTS))
    path = tmp_path / CAPABILITIES / name
    assert path.read_text() == f"DeviceFileMinor: {minor}\nDeviceFileMode: {mode}\nDeviceFileModify: 1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_the_minors_are_those_of_every_machine(tmp_path: Path) -> None:
    """The kernel module lists all that there can be when it is loaded."""
    asyncio.run(simulator(tmp_path).stage(compiled("h100", ONE), FACTS))
    lines = (tmp_path / MINORS).read_text().splitlines()
    assert len(lines) == 2 + 32 * 15 * 9
    assert lines[:5] == ["config 1", "monitor 2", "gpu0/gi0/access 3", "gpu0/gi0/ci0/access 4", "gpu0/gi0/ci1/access 5"]
    assert lines[-1] == "gpu31/gi14/ci7/access 4322"
    assert [int(line.split()[1]) for line in lines] == list(range(1, 4323))


@pytest.mark.parametrize("devices", ["stand-in", "none"])
def test_what_a_device_is_depends_on_the_node(tmp_path: Path, devices: Devices) -> None:
    tree = simulator(tmp_path, devices).tree(compiled("h100", ONE), FACTS)
    made = [surface for surface in tree if surface.path.startswith("driver/dev")]
    assert [type(surface) for surface in made] == ([StandIn] * 4 if devices == "stand-in" else [])


@pytest.mark.parametrize(
    "section",
    ["{}", "{gpus: [{index: 0}]}", f"{{gpus: [{{mode: disabled, gpu_instances: [{named('1g.10gb')}]}}]}}"],
    ids=["no section", "MIG mode alone", "disabled"],
)
def test_nothing_is_there_where_nothing_is_partitioned(tmp_path: Path, section: str) -> None:
    assert simulator(tmp_path, "node").tree(compiled("h100", section), FACTS) == Tree.empty


def test_another_partition_replaces_this_one_and_none_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        caps = simulator(tmp_path)
        for section in (ONE, OTHER, ONE, "{}"):
            state: State = compiled("h100", section)
            assert await caps.plan(state, FACTS)
            await caps.stage(state, FACTS)
            assert found(tmp_path) == set(caps.tree(state, FACTS).paths)
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_discarding_takes_all_away(tmp_path: Path) -> None:
    async def main() -> None:
        caps = simulator(tmp_path)
        await caps.stage(compiled("h100", ONE), FACTS)
        assert caps.ready()
        await caps.discard()
        assert not caps.ready()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_what_is_not_ours_stays_and_is_named(tmp_path: Path) -> None:
    foreign = tmp_path / CAPABILITIES / "fabric-imex-mgmt"
    in_the_way = tmp_path / MINORS
    for path in (foreign, in_the_way):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("foreign")

    async def main() -> None:
        caps = simulator(tmp_path)
        with pytest.raises(ConvergeError, match="mig-minors"):
            await caps.stage(compiled("h100", ONE), FACTS)
        in_the_way.unlink()
        await caps.stage(compiled("h100", ONE), FACTS)
        await caps.discard()
        assert found(tmp_path) == {str(foreign.relative_to(tmp_path))}

    asyncio.run(main())


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are root's to make")
def test_device_nodes_have_the_capabilities_major(tmp_path: Path) -> None:
    asyncio.run(simulator(tmp_path, "node").stage(compiled("h100", ONE), FACTS))
    made = (tmp_path / "driver/dev/nvidia-caps/nvidia-cap157").stat()
    assert (os.major(made.st_rdev), os.minor(made.st_rdev)) == (240, 157)


@pytest.mark.parametrize(("major", "name"), [(1, "mem"), (7, "loop")])
def test_a_major_that_another_driver_has_is_refused(tmp_path: Path, major: int, name: str) -> None:
    """A capability of that major would open the other driver's device: 1 has the machine's memory."""
    state = compiled("h100", ONE.replace("240", str(major)))
    with pytest.raises(TreeError, match=f"^mig.caps_major: {major} is the major of {name} on this machine"):
        simulator(tmp_path, "node").tree(state, FACTS)
    assert simulator(tmp_path, "stand-in").tree(state, FACTS)
