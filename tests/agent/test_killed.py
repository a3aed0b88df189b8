"""Real time, real files: drift is repaired, and what a killed agent leaves the next one sets right."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import random
import time
from pathlib import Path

from simnode.agent import Agent, AgentConfig
from simnode.host import Host
from simnode.simulators import in_thread
from tests.agent.acting import Schedule, state
from tests.agent.staging import FILES, Changing, Publishing, Staging, named

SPAWN = multiprocessing.get_context("spawn")
KILLS = 12


def agent(root: Path, source: Changing | Schedule, resync_interval: float = 0) -> Agent:
    host = Host(root, boot_id="boot")
    simulators = (Staging("a", host, lacking=True), Publishing("b", host, root))
    return Agent(
        AgentConfig(
            simulators,
            source,
            logging.getLogger("tests"),
            staging_lock_path=root.parent / "staging.lock",
            lifetime_lock_path=root.parent / "agent.lock",
            resync_interval=resync_interval,
        )
    )


def files(root: Path) -> dict[str, str]:
    """What stands under the tree, read while the agent may write: a file on its way there (`.name~`) is none yet."""
    return {path.name: path.read_text() for path in (root / "tree").iterdir() if not path.name.startswith(".")}


def wanted(number: int) -> dict[str, str]:
    return {f"{name}{index}": str(number) for name in "ab" for index in range(FILES) if index != number % FILES}


def test_what_somebody_deletes_or_alters_is_back_within_one_resync(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()

    async def live() -> None:
        one = agent(root, Schedule([(0, state(3))]), resync_interval=0.2)
        running = asyncio.create_task(one.run())
        await one.settled(1)
        for drift in ((root / "tree/a0").unlink, lambda: (root / "tree/b1").write_text("altered")):
            await in_thread(drift)
            async with asyncio.timeout(10):
                await asyncio.sleep(0.2)
                while files(root) != wanted(3) or not one.readiness().check().ok:
                    await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(live())
    assert list(root.iterdir()) == []


def _change(root: Path, first: int, started: object) -> None:
    one = agent(root, Changing(60, first))
    started.set()  # type: ignore[attr-defined]
    asyncio.run(one.run())


def test_an_agent_killed_at_any_moment_publishes_nothing_that_is_gone_and_its_successor_sets_all_right(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    moments = random.Random(3)
    for kill in range(KILLS):
        started = SPAWN.Event()
        process = SPAWN.Process(target=_change, args=(root, 1 + 7 * kill, started))
        process.start()
        assert started.wait(30)
        time.sleep(moments.uniform(0, 0.1))
        process.kill()
        process.join()
        assert [path for path in named(root) if not (root / path).exists()] == []

    async def live() -> None:
        one = agent(root, Schedule([(0, state(4))]))
        running = asyncio.create_task(one.run())
        await one.settled(1)
        while not one.readiness().check().ok:
            await asyncio.sleep(0.01)
        assert files(root) == wanted(4)
        assert {Path(path).name for path in named(root)} == {name for name in wanted(4) if name.startswith("b")}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(live())
    assert list(root.iterdir()) == []
