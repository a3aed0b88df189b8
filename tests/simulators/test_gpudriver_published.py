"""A host node's driver at /run/nvidia/driver: what is published there, what is left alone, and what revoking leaves."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from simnode.contracts import Applier
from simnode.host import ConvergeError, Directory, Host, Link, Tree
from simnode.simulators.gpudriver import DriverFiles, GPUDriver, Outside, PublishedGPUDriver
from simnode.state import State
from tests.host.scene import around_calls
from tests.simulators.states import FACTS, state

FILES = DriverFiles(library=b"library", nvidia_smi=b'#!/bin/sh\ncat "${0%/bin/*}/lib64/libnvidia-ml.so.1"\n')
PLACE = "run/nvidia/driver"
OLD = (state(2), FACTS)


class Scene:
    """A host with a node on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / PLACE
        self.node_root = root / "var/lib/simnode"
        self.node_root.mkdir(parents=True)
        (root / "run").mkdir()

    def driver(self) -> PublishedGPUDriver:
        """A new agent's. The paths that the host knows and ours are the same here, so links can be followed."""
        host = Host(self.node_root, boot_id="boot")
        outside = Outside(host.elsewhere(self.root, "host"), str(self.node_root / "driver"))
        return PublishedGPUDriver(host, FILES, "none", outside=outside)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A host without any driver."""
    return Scene(tmp_path)


async def up(driver: PublishedGPUDriver, wanted: State = OLD[0]) -> None:
    await driver.stage(wanted, FACTS)
    await driver.apply(wanted, FACTS)


def test_what_is_published_leads_into_the_driver_root_by_the_hosts_own_paths() -> None:
    host = Host("/nonexistent", boot_id="boot")
    outside = Outside(host.elsewhere("/host", "host"), "/var/lib/simnode/driver")
    published = PublishedGPUDriver(host, FILES, "none", outside=outside).published(*OLD)
    assert published == Tree(
        [
            Directory(PLACE, 0o755, "/var/lib/simnode/driver"),
            *(Link(f"{PLACE}/{name}", f"/var/lib/simnode/driver/{name}") for name in ("config", "proc", "usr")),
        ]
    )


def test_only_a_host_nodes_driver_publishes(scene: Scene) -> None:
    assert isinstance(scene.driver(), Applier)
    assert not isinstance(GPUDriver(Host(scene.node_root, boot_id="boot"), FILES, "none"), Applier)


def test_programs_of_the_host_find_driver_and_image_there(scene: Scene) -> None:
    asyncio.run(up(scene.driver()))
    run = subprocess.run([scene.place / "usr/bin/nvidia-smi"], stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"library"
    assert (scene.place / "usr/lib64/libnvidia-ml.so.550.163.01").resolve().is_file()
    assert (scene.place / "config/image.1").is_file()
    assert (scene.place / "proc/driver/nvidia/version").is_file()
    assert not (scene.place / "dev").exists()


def test_it_is_ready_between_publishing_and_the_next_stage(scene: Scene) -> None:
    async def main() -> None:
        driver = scene.driver()
        await driver.stage(*OLD)
        assert not driver.ready()
        await driver.apply(*OLD)
        assert driver.ready()
        await driver.patch(*OLD)
        assert driver.ready()
        await driver.stage(*OLD)
        assert not driver.ready()
        await driver.apply(*OLD)
        await driver.revoke()
        assert not driver.ready()

    asyncio.run(main())


def test_applied_again_it_stays_ready_at_every_call_until_something_is_in_the_way(scene: Scene) -> None:
    readiness: list[bool] = []

    async def main() -> None:
        driver = scene.driver()
        await up(driver)

        def around(_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
            readiness.append(driver.ready())
            return call(*arguments)

        (scene.place / "usr").unlink()
        with around_calls(around):
            await driver.apply(*OLD)
        assert driver.ready()
        (scene.place / "usr").unlink()
        (scene.place / "usr/foreign").mkdir(parents=True)
        with pytest.raises(ConvergeError, match=f"{PLACE}/usr: "):
            await driver.apply(*OLD)
        assert not driver.ready()

    asyncio.run(main())
    assert readiness
    assert all(readiness)


def test_revoking_leaves_the_host_as_it_was(scene: Scene) -> None:
    async def main() -> None:
        await up(scene.driver())
        later = scene.driver()
        await later.revoke()
        await later.revoke()
        assert list((scene.root / "run").iterdir()) == []
        await later.discard()
        assert list(scene.node_root.iterdir()) == []

    asyncio.run(main())


def test_a_directory_that_a_container_has_mounted_keeps_its_inode(scene: Scene) -> None:
    scene.place.mkdir(parents=True)
    inode = scene.place.stat().st_ino

    async def main() -> None:
        driver = scene.driver()
        for _ in range(2):
            await up(driver)
            await driver.narrow(OLD, (state(1, "535.129.03"), FACTS))
            await up(driver, state(1, "535.129.03"))
        await driver.revoke()

    asyncio.run(main())
    assert scene.place.stat().st_ino == inode
    assert list(scene.place.iterdir()) == []


@pytest.mark.parametrize("target", ["var/lib/simnode/driver", "var/lib/gone/driver"], ids=["ours", "to nothing"])
def test_a_stale_link_is_taken_over(scene: Scene, target: str) -> None:
    scene.place.parent.mkdir()
    scene.place.symlink_to(scene.root / target)
    asyncio.run(up(scene.driver()))
    assert not scene.place.is_symlink()
    assert (scene.place / "usr/bin/nvidia-smi").is_file()


def test_an_installed_driver_is_left_alone_all_of_it_and_named(scene: Scene) -> None:
    (scene.place / "usr/bin").mkdir(parents=True)
    before = scene.place.stat()

    async def main() -> None:
        driver = scene.driver()
        await driver.stage(*OLD)
        with pytest.raises(ConvergeError, match=f"{PLACE}/usr: occupied by a directory that simnode did not make"):
            await driver.apply(*OLD)
        assert not driver.ready()
        assert [path.name for path in scene.place.iterdir()] == ["usr"]
        assert scene.place.stat().st_mtime_ns == before.st_mtime_ns
        await driver.revoke()
        (scene.place / "usr/bin").rmdir()
        (scene.place / "usr").rmdir()
        await driver.apply(*OLD)
        assert driver.ready()

    asyncio.run(main())


def test_a_link_to_an_installed_driver_is_left_alone_and_named(scene: Scene) -> None:
    (scene.root / "opt/nvidia/usr").mkdir(parents=True)
    scene.place.parent.mkdir()
    scene.place.symlink_to("../../opt/nvidia")

    async def main() -> None:
        with pytest.raises(ConvergeError, match=f"{PLACE}: a link is where a directory must be"):
            await up(scene.driver())

    asyncio.run(main())
    assert scene.place.readlink() == Path("../../opt/nvidia")


def test_narrowing_publishes_nothing(scene: Scene) -> None:
    async def main() -> None:
        driver = scene.driver()
        await driver.stage(*OLD)
        await driver.narrow(OLD, OLD)
        assert not os.path.lexists(scene.place)
        await driver.apply(*OLD)
        (scene.place / "usr").unlink()
        await driver.narrow(OLD, OLD)
        assert sorted(path.name for path in scene.place.iterdir()) == ["config", "proc"]

    asyncio.run(main())


CHANGES = {
    "another driver": (state(8), state(8, "535.129.03")),
    "fewer GPUs and another driver": (state(8), state(1, "535.129.03")),
    "no GPU": (state(2), state(0)),
    "a MIG table": (state(2), msgspec.structs.replace(state(2), mig_profiles_raw=b"x")),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_at_every_call_of_a_change_whatever_is_published_is_there_and_wanted(
    scene: Scene, before: State, after: State
) -> None:
    driver = scene.driver()
    wanted = {*driver.tree(before, FACTS).directories, *driver.tree(after, FACTS).directories}
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        for link in scene.place.iterdir():
            assert link.exists(), link
            assert str(link.readlink().relative_to(scene.node_root)) in wanted

    def around(_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        look()
        result = call(*arguments)
        look()
        return result

    async def main() -> None:
        await up(driver, before)
        with around_calls(around):
            await driver.narrow((before, FACTS), (after, FACTS))
            await up(driver, after)
        assert sorted(path.name for path in scene.place.iterdir()) == ["config", "proc", "usr"]

    asyncio.run(main())
    assert looks > 0
