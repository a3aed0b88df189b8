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
from simnode.host.tree import target_of
from simnode.nvml.cells import HEADER, IMAGE, SLOT
from simnode.simulators.gpudriver import DriverFiles, GPUDriver, Outside, PublishedGPUDriver
from simnode.state import State
from tests.host.scene import around_calls, picture
from tests.simulators.states import FACTS, state

FILES = DriverFiles(library=b"library", nvidia_smi=b'#!/bin/sh\ncat "${0%/bin/*}/lib64/libnvidia-ml.so.1"\n')
PLACE = "run/nvidia/driver"
MIRRORED = ("driver/config", "driver/proc/", "driver/usr/")
OLD = (state(2), FACTS)


class Scene:
    """A host with a node on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / PLACE
        self.node_root = root / "var/lib/simnode"
        self.node_root.mkdir(parents=True)
        (root / "run").mkdir()

    def driver(self, *, lasting: bool = False) -> PublishedGPUDriver:
        """A new agent's. The paths that the host knows and ours are the same here, so links can be followed."""
        host = Host(self.node_root, boot_id="boot")
        outside = Outside(host.elsewhere(self.root, "host"), str(self.node_root / "driver"), lasting)
        return PublishedGPUDriver(host, FILES, "none", outside=outside)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A host without any driver."""
    return Scene(tmp_path)


async def up(driver: PublishedGPUDriver, wanted: State = OLD[0]) -> None:
    await driver.stage(wanted, FACTS)
    await driver.apply(wanted, FACTS)


def test_what_is_published_is_the_driver_without_its_devices_whole_in_itself() -> None:
    host = Host("/nonexistent", boot_id="boot")
    driver = PublishedGPUDriver(
        host, FILES, "node", outside=Outside(host.elsewhere("/host", "host"), "/var/lib/simnode/driver")
    )
    published, staged = driver.published(*OLD), driver.tree(*OLD)
    mirrored = {path.removeprefix("driver/") for path in staged.paths if path.startswith(MIRRORED)}
    assert {path.removeprefix(f"{PLACE}/") for path in published.paths} == {*mirrored, PLACE, "etc/simnode"}
    assert published.get(PLACE) == Directory(PLACE, 0o755, "/var/lib/simnode/driver")
    for surface in published:
        if isinstance(surface, Link):
            target = target_of(surface.path, surface.target)
            assert target is not None
            assert target in published or target in published.directories


def test_a_file_is_copied_once_for_all_trees(scene: Scene) -> None:
    driver = scene.driver()
    library = f"{PLACE}/usr/lib64/libnvidia-ml.so.550.163.01"
    assert driver.published(*OLD).get(library) is driver.published(state(5), FACTS).get(library)


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

        (scene.place / "usr/bin/nvidia-smi").unlink()
        with around_calls(around):
            await driver.apply(*OLD)
        assert driver.ready()
        (scene.place / "usr/bin/nvidia-smi").unlink()
        (scene.place / "usr/bin/nvidia-smi/foreign").mkdir(parents=True)
        with pytest.raises(ConvergeError, match=f"{PLACE}/usr/bin/nvidia-smi: "):
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
    (scene.place / "usr/bin/nvidia-smi").write_text("theirs")
    before = scene.place.stat()

    async def main() -> None:
        driver = scene.driver()
        await driver.stage(*OLD)
        with pytest.raises(ConvergeError, match=f"{PLACE}/usr/bin/nvidia-smi: occupied by a regular file"):
            await driver.apply(*OLD)
        assert not driver.ready()
        assert [path.name for path in scene.place.iterdir()] == ["usr"]
        assert scene.place.stat().st_mtime_ns == before.st_mtime_ns
        await driver.revoke()
        assert (scene.place / "usr/bin/nvidia-smi").read_text() == "theirs"
        (scene.place / "usr/bin/nvidia-smi").unlink()
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


def test_narrowing_changes_nothing(scene: Scene) -> None:
    async def main() -> None:
        driver = scene.driver()
        await driver.stage(*OLD)
        await driver.narrow(OLD, OLD)
        assert not os.path.lexists(scene.place)
        await driver.apply(*OLD)
        before = picture(scene.place)
        await driver.narrow(OLD, (state(0), FACTS))
        assert picture(scene.place) == before

    asyncio.run(main())


CHANGES = {
    "another driver": (state(8), state(8, "535.129.03")),
    "fewer GPUs and another driver": (state(8), state(1, "535.129.03")),
    "no GPU": (state(2), state(0)),
    "a MIG table": (state(2), msgspec.structs.replace(state(2), mig_profiles_raw=b"x")),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_at_every_call_of_a_change_there_is_a_driver_and_every_link_leads_to_something_in_it(
    scene: Scene, before: State, after: State
) -> None:
    driver = scene.driver()
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        assert (scene.place / "usr/lib64/libnvidia-ml.so.1").exists()
        assert (scene.place / "usr/bin/nvidia-smi").exists()
        for path in scene.place.rglob("*"):
            if path.is_symlink() and not path.name.startswith("."):
                assert path.resolve().is_relative_to(scene.place), path
                assert path.exists(), path

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

    asyncio.run(main())
    assert looks > 0
    assert {path.name for path in (scene.place / "usr/lib64").glob("libnvidia-ml.so.*.*")} == {
        f"libnvidia-ml.so.{after.software.driver_version}"
    }


def test_links_of_an_earlier_release_of_ours_give_way(scene: Scene) -> None:
    """It published links into the driver root, under the same owner."""
    old = Host(scene.node_root, boot_id="boot").elsewhere(scene.root, "host")
    links = (Link(f"{PLACE}/{name}", f"{scene.node_root}/driver/{name}") for name in ("config", "proc", "usr"))
    old.converge("gpudriver.published", Tree((Directory(PLACE), *links)))
    inode = scene.place.stat().st_ino
    asyncio.run(up(scene.driver()))
    assert scene.place.stat().st_ino == inode
    assert not (scene.place / "usr").is_symlink()
    assert (scene.place / "usr/bin/nvidia-smi").is_file()


def test_the_published_image_says_what_the_staged_one_says(scene: Scene) -> None:
    def slot(path: Path) -> bytes:
        content = path.read_bytes()
        done = int.from_bytes(content[HEADER.offsets["done"] :][:8], "little")
        return content[IMAGE.offsets["slot"] + (done & 1) * SLOT.size :][: SLOT.size]

    async def main() -> None:
        driver = scene.driver()
        await up(driver)
        for gpus in (2, 3, 1):
            await driver.patch(state(gpus), FACTS)
            assert slot(scene.node_root / "driver/config/image.1") == slot(scene.place / "config/image.1")
        (scene.place / "config/image.1").unlink()
        await driver.patch(state(2), FACTS)
        await driver.apply(state(2), FACTS)
        assert slot(scene.node_root / "driver/config/image.1") == slot(scene.place / "config/image.1")

    asyncio.run(main())


@pytest.mark.parametrize("lasting", [False, True])
def test_directories_that_containers_mount_outlive_an_agent_if_told_so(scene: Scene, lasting: bool) -> None:
    mounted = [scene.place, scene.node_root / "driver/config", scene.node_root / "driver/proc/driver"]

    async def once() -> list[int]:
        driver = scene.driver(lasting=lasting)
        await up(driver)
        inodes = [path.stat().st_ino for path in mounted]
        await driver.revoke()
        await driver.discard()
        return inodes

    first = asyncio.run(once())
    assert [path.is_dir() for path in mounted] == [lasting] * 3
    if lasting:
        assert asyncio.run(once()) == first
        assert not any(any(path.iterdir()) for path in mounted)

    async def clean() -> None:
        driver = scene.driver()
        await driver.revoke()
        await driver.discard()

    asyncio.run(clean())
    assert [path.name for path in scene.root.rglob("*")] and not any(path.exists() for path in mounted)


def test_one_that_never_published_leaves_no_directory(scene: Scene) -> None:
    async def main() -> None:
        driver = scene.driver(lasting=True)
        await driver.revoke()
        await driver.discard()

    asyncio.run(main())
    assert list(scene.node_root.iterdir()) == list((scene.root / "run").iterdir()) == []


def test_a_directory_of_somebody_else_keeps_no_agent_from_ending(scene: Scene) -> None:
    scene.place.mkdir(parents=True, mode=0o700)

    async def main() -> None:
        driver = scene.driver(lasting=True)
        await driver.stage(*OLD)
        with pytest.raises(ConvergeError, match=f"{PLACE}: mode is not 0755"):
            await driver.apply(*OLD)
        await driver.revoke()
        await driver.discard()

    asyncio.run(main())
    assert scene.place.stat().st_mode & 0o777 == 0o700
    assert list(scene.place.iterdir()) == []
