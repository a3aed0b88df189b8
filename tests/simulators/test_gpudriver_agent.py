"""The GPU driver under a real agent, in real time: up, in the way of something foreign, and down again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from simnode.agent import Agent, AgentConfig, Failure, Staged
from simnode.host import Host
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.sources.fixed import FixedSource
from tests.simulators.states import state

FILES = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi")


def agent(root: Path) -> Agent:
    driver = GPUDriver(Host(root, boot_id="boot"), FILES, "none")
    return Agent(AgentConfig((driver,), FixedSource(state(8)), logging.getLogger("tests.agent"), first_retry=0.05))


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def test_it_is_staged_and_then_nothing_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        node = agent(tmp_path)
        running = asyncio.create_task(node.run())
        await asyncio.wait_for(node.staged().wait(), 30)
        assert (tmp_path / "driver/usr/lib64/libnvidia-ml.so").read_bytes() == b"library"
        await stop(running)

    asyncio.run(main())
    assert not (tmp_path / "driver").exists()


def test_a_surface_in_the_way_is_named_and_staged_once_it_is_gone(tmp_path: Path) -> None:
    foreign = tmp_path / "driver/usr/bin/nvidia-smi"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("foreign")
    told: list[tuple[Failure, ...]] = []

    def hear(staged: Staged) -> None:
        told.append(staged.failures)
        if staged.failures:
            foreign.unlink(missing_ok=True)

    async def main() -> None:
        node = agent(tmp_path)
        node.staged().listen(hear)
        running = asyncio.create_task(node.run())
        await asyncio.wait_for(node.staged().wait(), 30)
        assert foreign.read_bytes() == b"nvidia-smi"
        await stop(running)

    asyncio.run(main())
    (failure,) = told[0]
    assert (failure.simulator, failure.action, failure.surface) == ("gpudriver", "stage", "driver/usr/bin/nvidia-smi")
    assert foreign.parent.is_dir()
    assert list(foreign.parent.iterdir()) == []
