"""The fabric manager's directory and marker: when they are there, who takes them away, and what is told of it."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from simnode.host import ConvergeError, Directory, Host, Tree
from simnode.simulators.fabricmanager import FabricManager
from simnode.state import FabricState, FactValue, State
from tests.simulators.states import FACTS, state

DIRECTORY, MARKER = "fabric-state", "fabric-state/fabricmanager.ready"
PERIOD = 0.02
OFF = state(2)
ON = msgspec.structs.replace(OFF, fabric=FabricState(enabled=True, manager_state_dir="/run/simnode/fabricmanager"))


class Scene:
    """One fabric manager over one root, and what it reports."""

    def __init__(self, root: Path, log: logging.Logger) -> None:
        self.root = root
        self.marker = root / MARKER
        self.told: list[tuple[str, FactValue]] = []
        self._log = log

    def manager(self, init_delay: float = 0.0) -> FabricManager:
        def report(name: str, value: FactValue) -> None:
            self.told.append((name, value))

        host = Host(self.root, boot_id="boot")
        return FabricManager(host, report, self._log, init_delay=init_delay, period=PERIOD)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """An empty root."""
    return Scene(tmp_path, logging.getLogger("tests.fabricmanager"))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(PERIOD / 4)


@asynccontextmanager
async def running(manager: FabricManager, first: State) -> AsyncIterator[None]:
    """Staged for `first`, with the daemon at work as an agent would launch it."""
    await manager.stage(first, FACTS)
    task = asyncio.create_task(manager.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def follow(manager: FabricManager, *states: State) -> None:
    for each in states:
        await manager.stage(each, FACTS)
        await manager.reload(each, FACTS)


def test_the_tree_is_the_directory_while_the_manager_is_on(scene: Scene) -> None:
    assert scene.manager().tree(ON, FACTS) == Tree([Directory(DIRECTORY, 0o755)])
    assert scene.manager().tree(OFF, FACTS) == Tree.empty


def test_while_it_is_off_it_is_ready_and_nothing_is_there(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        assert not manager.ready()
        async with running(manager, OFF):
            await asyncio.sleep(4 * PERIOD)
            assert manager.ready()
            assert list(scene.root.iterdir()) == []
        assert scene.told == []

    asyncio.run(main())


def test_it_is_ready_and_says_so_once_the_marker_is_there(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            assert not manager.ready()
            await until(manager.ready)
            found = scene.marker.lstat()
            assert (stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode)) == (stat.S_IFREG, 0o644)
            assert found.st_size == 0
            assert scene.told == [("fabric_ready", True)]

    before = os.umask(0o077)
    try:
        asyncio.run(main())
    finally:
        os.umask(before)


def test_staging_alone_makes_no_marker(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        await manager.stage(ON, FACTS)
        await asyncio.sleep(4 * PERIOD)
        assert list((scene.root / DIRECTORY).iterdir()) == []
        assert not manager.ready()

    asyncio.run(main())


def test_the_marker_waits_for_the_init_delay(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager(init_delay=0.2)
        async with running(manager, ON):
            start = asyncio.get_running_loop().time()
            await asyncio.sleep(0.1)
            assert not scene.marker.exists()
            assert not manager.ready()
            await until(manager.ready)
            assert asyncio.get_running_loop().time() - start >= 0.2
            assert scene.marker.exists()

    asyncio.run(main())


def test_a_marker_of_an_earlier_life_is_gone_before_staging_ends(scene: Scene) -> None:
    async def main() -> None:
        (scene.root / DIRECTORY).mkdir()
        scene.marker.touch()
        manager = scene.manager(init_delay=60)
        async with running(manager, ON):
            assert not scene.marker.exists()
            assert not manager.ready()

    asyncio.run(main())


def test_a_marker_that_is_there_is_not_written(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            before = (scene.marker.stat(), scene.marker.parent.stat())
            await asyncio.sleep(6 * PERIOD)
            after = (scene.marker.stat(), scene.marker.parent.stat())
            for one, other in zip(before, after, strict=True):
                assert (one.st_ino, one.st_ctime_ns) == (other.st_ino, other.st_ctime_ns)

    asyncio.run(main())


def test_a_marker_that_was_removed_is_back_within_a_period(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            scene.marker.unlink()
            await until(scene.marker.exists)
            assert manager.ready()
        assert scene.told == [("fabric_ready", True), ("fabric_ready", False)]

    asyncio.run(main())


def test_staging_the_same_again_leaves_the_marker(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            inode = scene.marker.stat().st_ino
            assert not await manager.plan(ON, FACTS)
            await follow(manager, ON, ON)
            assert scene.marker.stat().st_ino == inode
            assert manager.ready()

    asyncio.run(main())


def test_it_follows_off_and_on(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager(init_delay=0.05)
        async with running(manager, OFF):
            for _ in range(3):
                await follow(manager, ON)
                assert not manager.ready()
                await until(manager.ready)
                assert scene.marker.exists()
                await follow(manager, OFF)
                assert manager.ready()
                assert list(scene.root.iterdir()) == []
        assert scene.told == [("fabric_ready", True), ("fabric_ready", False)] * 3

    asyncio.run(main())


def test_turned_off_during_the_delay_it_never_writes(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager(init_delay=0.05)
        async with running(manager, ON):
            await follow(manager, OFF)
            await asyncio.sleep(0.1)
            assert list(scene.root.iterdir()) == []
            await follow(manager, ON, OFF, ON)
            await until(manager.ready)
            assert scene.marker.exists()

    asyncio.run(main())


def test_turned_on_and_off_again_at_once_it_never_serves(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            await manager.reload(OFF, FACTS)
            await asyncio.sleep(0.1)
            scene.marker.unlink()
            await manager.reload(ON, FACTS)
            await manager.reload(OFF, FACTS)
            await asyncio.sleep(0.1)
            assert not scene.marker.exists()

    asyncio.run(main())


def test_the_marker_goes_before_its_directory(scene: Scene) -> None:
    """With a foreign file the directory stays, so whether the marker went does not depend on it."""

    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            (scene.root / DIRECTORY / "foreign").touch()
            await follow(manager, OFF)
            assert [path.name for path in (scene.root / DIRECTORY).iterdir()] == ["foreign"]

    asyncio.run(main())


def test_the_end_of_the_daemon_takes_the_marker_and_says_so(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
        assert not scene.marker.exists()
        assert not manager.ready()
        assert scene.told[-1] == ("fabric_ready", False)
        await manager.discard()
        assert list(scene.root.iterdir()) == []

    asyncio.run(main())


def test_discarding_takes_what_a_killed_agent_left(scene: Scene) -> None:
    async def main() -> None:
        killed = scene.manager()
        async with running(killed, ON):
            await until(killed.ready)
            await scene.manager().discard()
            assert list(scene.root.iterdir()) == []

    asyncio.run(main())


def test_a_marker_that_cannot_be_kept_is_logged_once_and_so_is_its_return(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            scene.marker.unlink()
            scene.marker.mkdir()
            await until(lambda: not manager.ready())
            await asyncio.sleep(4 * PERIOD)
            scene.marker.rmdir()
            await until(manager.ready)
            assert scene.told == [("fabric_ready", True), ("fabric_ready", False), ("fabric_ready", True)]

    asyncio.run(main())
    assert caplog.messages == [
        f"{MARKER} cannot be kept: occupied by something that is no regular file; move it away",
        f"{MARKER} is kept again",
    ]


def test_without_its_directory_it_is_not_ready_until_that_is_repaired(scene: Scene) -> None:
    async def main() -> None:
        manager = scene.manager()
        async with running(manager, ON):
            await until(manager.ready)
            scene.marker.unlink()
            scene.marker.parent.rmdir()
            await until(lambda: not manager.ready())
            assert not scene.marker.parent.exists()
            assert await manager.plan(ON, FACTS)
            await manager.stage(ON, FACTS)
            await until(manager.ready)
            assert scene.marker.exists()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_in_the_directorys_place_is_left_alone_and_named(scene: Scene, kind: str) -> None:
    elsewhere = scene.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "fabricmanager.ready").write_text("foreign")
    place = scene.root / DIRECTORY
    if kind == "link":
        place.symlink_to("elsewhere")
    else:
        place.touch()

    async def main() -> None:
        manager = scene.manager()
        with pytest.raises(ConvergeError, match=f"{DIRECTORY}: must be a directory"):
            async with running(manager, ON):
                pass
        await manager.discard()

    asyncio.run(main())
    assert (elsewhere / "fabricmanager.ready").read_text() == "foreign"
    assert os.path.lexists(place)
