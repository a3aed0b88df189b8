"""One simulator's seat: it does one thing at a time, and each thing has a deadline.

A thread cannot be stopped from outside. So a call that misses its deadline is cancelled, which asks it to end, and the
seat stays busy until it has: nothing else of that simulator runs meanwhile, everybody else goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from simnode.agent.failures import OverdueError
from simnode.contracts import Simulator

Work = Callable[[], Coroutine[object, object, None]]


class Seat:
    """Where one simulator sits in the waves."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.name = simulator.name
        self._task: asyncio.Task[None] | None = None
        self._action = ""

    @property
    def busy(self) -> bool:
        """True while a call runs, be it past its deadline."""
        return self._task is not None and not self._task.done()

    def busy_with(self, action: str) -> bool:
        """True while a call of this kind runs."""
        return self.busy and self._action == action

    def when_idle(self, call: Callable[[], None]) -> None:
        """Make `call` in the event loop once what runs now has ended; never if nothing does."""
        if self._task is not None and self.busy:
            self._task.add_done_callback(lambda _: call())

    async def idle(self, timeout: float) -> None:
        """Return once nothing runs here, or after `timeout` seconds."""
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=timeout)

    async def call(self, action: str, work: Work, timeout: float) -> None:
        """Run `work` once whatever ran before has ended, all within `timeout` seconds, or raise OverdueError.

        Whatever `work` raises comes out. If the caller is cancelled the call is, too, without being awaited.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        await self.idle(timeout)
        if self.busy:
            raise OverdueError(f"an earlier {self._action} has not returned for another {timeout:.3g} s")
        task = asyncio.create_task(_coroutine(work), name=f"{self.name}: {action}")
        task.add_done_callback(_retrieve)
        self._task, self._action = task, action
        try:
            await asyncio.wait({task}, timeout=max(0.0, until - loop.time()))
        finally:
            in_time = task.done()
            task.cancel()
        if not in_time:
            raise OverdueError(f"did not return within {timeout:.3g} s")
        if task.cancelled():
            raise RuntimeError("was cancelled from within")
        task.result()


async def _coroutine(work: Work) -> None:
    await work()


def _retrieve(task: asyncio.Task[None]) -> None:
    """Mark the outcome of a call that nobody waits for any more as seen."""
    if not task.cancelled():
        task.exception()
