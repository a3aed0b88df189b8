"""A seat: one thing at a time, each within its deadline."""

from __future__ import annotations

import asyncio

import pytest

from simnode.agent.failures import OverdueError
from simnode.agent.seats import Seat
from tests.agent.acting import Stager
from tests.agent.virtual import run


def test_waiting_for_an_earlier_call_counts() -> None:
    async def deaf() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(100)
        await asyncio.sleep(6)

    async def main() -> None:
        seat = Seat(Stager("a", []))
        loop = asyncio.get_running_loop()
        with pytest.raises(OverdueError, match="did not return within 10 s"):
            await seat.call("stage", deaf, 10)
        assert (loop.time(), seat.busy) == (10, True)
        with pytest.raises(OverdueError, match="did not return within 10 s"):
            await seat.call("stage", lambda: asyncio.sleep(5), 10)
        assert loop.time() == 20

    run(main())


def test_a_call_that_cancels_itself_has_failed() -> None:
    async def main() -> None:
        async def gives_up() -> None:
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="was cancelled from within"):
            await Seat(Stager("a", [])).call("stage", gives_up, 10)

    run(main())


def test_a_late_error_is_not_the_next_calls() -> None:
    async def main() -> None:
        async def late() -> None:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(100)
            raise OSError("no space")

        seat = Seat(Stager("a", []))
        with pytest.raises(OverdueError):
            await seat.call("stage", late, 10)
        await seat.call("stage", lambda: asyncio.sleep(1), 10)
        assert not seat.busy

    run(main())
