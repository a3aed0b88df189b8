"""The fabric under a real agent, in real time: NVML follows the fabric manager, and a reader follows NVML."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from simnode.agent import Agent, AgentConfig, Reports
from simnode.contracts import Update
from simnode.host import Host
from simnode.simulators.fabricmanager import FabricManager
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.simulators.nvlink import NVLink
from simnode.state import DeviceRuntime, FabricState, Runtime, State
from tests.simulators.states import state

LIBRARY = Path(__file__).parents[2] / "src/simnode/_native/libnvidia-ml.so"
TOPOLOGY = b"version: 1\n"
READER = """
import time, pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(1)
seen = 0
while True:
    info = n.c_nvmlGpuFabricInfo_t()
    n.nvmlDeviceGetGpuFabricInfo(gpu, n.byref(info))
    if info.state != seen:
        print(info.state, info.cliqueId, bytes(info.clusterUuid).hex(), flush=True)
        seen = info.state
    time.sleep(0.002)
"""
CLUSTER = "00112233445566778899aabbccddeeff"
IN_PROGRESS, COMPLETED = f"2 7 {CLUSTER}\n", f"3 7 {CLUSTER}\n"


def wanted(*, manager: bool, generation: int) -> State:
    """Two GPUs in clique 7 of a cluster, whose fabric state follows the fabric manager."""
    values = (("fabric.clique_id", 7), ("fabric.cluster_uuid", CLUSTER), ("fabric.state", "auto"))
    return msgspec.structs.replace(
        state(2),
        generation=generation,
        fabric=FabricState(enabled=True, manager_state_dir="/run/x" if manager else ""),
        runtime=Runtime((DeviceRuntime(values),) * 2),
        topology_raw=TOPOLOGY,
    )


class Source:
    """Emits what the test puts in."""

    def __init__(self) -> None:
        self._states: asyncio.Queue[State] = asyncio.Queue()

    def put(self, state: State) -> None:
        self._states.put_nowait(state)

    async def watch(self) -> AsyncIterator[Update]:
        while True:
            yield Update(at=datetime.now(UTC), state=await self._states.get())

    async def close(self) -> None:
        """Nothing is held."""


@asynccontextmanager
async def running(root: Path, source: Source, init_delay: float) -> AsyncIterator[Agent]:
    """An agent with all three simulators, discarded in the end."""
    host = Host(root, boot_id="boot")
    reports, log = Reports(), logging.getLogger("tests.agent")
    files = DriverFiles(LIBRARY.read_bytes(), b"nvidia-smi")
    simulators = (
        GPUDriver(host, files, "none"),
        FabricManager(host, reports.report, log, init_delay=init_delay, period=0.05),
        NVLink(host),
    )
    agent = Agent(AgentConfig(simulators, source, log, reports=reports))
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def reading(root: Path) -> AsyncIterator[asyncio.StreamReader]:
    """What a running process sees of the fabric's state, a line a change."""
    driver = root / "driver"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        READER,
        env={**os.environ, "LD_LIBRARY_PATH": str(driver / "usr/lib64")},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def line(output: asyncio.StreamReader) -> str:
    return (await asyncio.wait_for(output.readline(), 20)).decode()


async def settled(agent: Agent, source: Source, state: State) -> None:
    source.put(state)
    assert await asyncio.wait_for(agent.settled(state.generation), 20) == ()


def test_nvml_follows_the_fabric_manager_off_and_on(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        async with running(tmp_path, source, init_delay=1.0) as agent:
            await settled(agent, source, wanted(manager=True, generation=1))
            assert agent.staged().is_set()
            assert not agent.readiness().check().ok
            async with reading(tmp_path) as seen:
                assert await line(seen) == IN_PROGRESS
                assert await line(seen) == COMPLETED
                assert (tmp_path / "fabric-state/fabricmanager.ready").is_file()
                assert agent.readiness().check().ok
                await settled(agent, source, wanted(manager=False, generation=2))
                assert not (tmp_path / "fabric-state").exists()
                await settled(agent, source, wanted(manager=True, generation=3))
                assert await line(seen) == IN_PROGRESS
                assert await line(seen) == COMPLETED

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_becoming_ready_is_a_patch_and_nothing_more(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        async with running(tmp_path, source, init_delay=0.0) as agent:
            turns: list[bool] = []
            agent.staged().listen(lambda staged: turns.append(staged.is_set()))
            await settled(agent, source, wanted(manager=True, generation=1))
            async with asyncio.timeout(20):
                while not agent.record.timings["patch"].count:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            assert agent.record.timings["patch"].count == 1
            assert agent.record.timings["stage"].count == 1
            assert turns == [True]

    asyncio.run(main())


def test_topology_document_comes_and_goes_with_the_state(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        async with running(tmp_path, source, init_delay=0.0) as agent:
            document = tmp_path / "topology/topology.yaml"
            first = wanted(manager=False, generation=1)
            await settled(agent, source, first)
            assert document.read_bytes() == TOPOLOGY
            await settled(agent, source, msgspec.structs.replace(first, generation=2, topology_raw=b""))
            assert not document.parent.exists()

    asyncio.run(main())
