"""How simulators wait for file work in threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simnode.simulators import in_thread


def test_the_result_and_the_error_come_out() -> None:
    async def main() -> None:
        assert await in_thread(lambda: 42) == 42
        with pytest.raises(OSError, match="no space"):
            await in_thread(_refuse)

    asyncio.run(main())


def _refuse() -> None:
    raise OSError("no space")


def test_the_loop_goes_on_meanwhile() -> None:
    async def main() -> None:
        gate = threading.Event()
        waiting = asyncio.create_task(in_thread(lambda: gate.wait(30)))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.set()
        assert await waiting

    asyncio.run(main())


def test_a_cancelled_call_ends_only_when_its_thread_has_returned() -> None:
    async def main() -> None:
        gate = threading.Event()
        waiting = asyncio.create_task(in_thread(lambda: gate.wait(30)))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_a_call_cancelled_twice_leaves_its_thread_behind() -> None:
    async def main() -> None:
        gate = threading.Event()
        waiting = asyncio.create_task(in_thread(lambda: gate.wait(30)))
        for _ in range(2):
            await asyncio.sleep(0.01)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()

    asyncio.run(main())


def test_an_error_after_the_cancellation_is_swallowed() -> None:
    async def main() -> None:
        gate = threading.Event()

        def late() -> None:
            gate.wait(30)
            raise OSError("no space")

        waiting = asyncio.create_task(in_thread(late))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


ROOT = Path(__file__).parents[2]
HUNG = """
import asyncio, logging, time
from simnode.agent import Agent, AgentConfig, ShutdownError
from simnode.simulators import in_thread
from simnode.sources.fixed import FixedSource
from tests.agent.acting import Stager, state

class Hung(Stager):
    async def stage(self, state, facts):
        await in_thread(lambda: time.sleep(1000))

async def main():
    config = AgentConfig((Hung("a", []),), FixedSource(state(1)), logging.getLogger("x"), shutdown_timeout=0.2)
    running = asyncio.create_task(Agent(config).run())
    await asyncio.sleep(0.1)
    running.cancel()
    try:
        await running
    except ShutdownError as error:
        print(error)

asyncio.run(main())
"""


def test_a_thread_that_never_returns_is_left_behind_by_exiting() -> None:
    start = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", HUNG], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    assert ended.stdout.startswith("a: discard: an earlier stage has not returned for another 0.")
    assert time.monotonic() - start < 20
