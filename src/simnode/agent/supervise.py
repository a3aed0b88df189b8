"""The tasks that go on beside the waves: a simulator's daemon, and what listens to its requeues.

A daemon is launched once in the agent's life and never again: one that ended has left something in a state that nobody
knows. Its early end is a fault, logged, counted and told by `ended`, and stops nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from simnode.agent.failures import Failure, Failures, attribute
from simnode.agent.record import Record
from simnode.contracts import Daemon, Requeuer, Simulator


class Supervisor:
    """Owns the tasks of daemons and requeuers. `requeued` is called at each signal, in the event loop."""

    def __init__(
        self, simulators: Iterable[Simulator], log: logging.Logger, record: Record, requeued: Callable[[], None]
    ) -> None:
        self._simulators = tuple(simulators)
        self._log = log
        self._record = record
        self._requeued = requeued
        self._tasks: dict[asyncio.Task[None], str] = {}
        self.launched = False
        self.ended: dict[str, Failures] = {}

    def listen(self) -> None:
        """Follow the requeues from now on."""
        for simulator in self._simulators:
            if isinstance(simulator, Requeuer):
                self._start(simulator.name, "requeue", partial(self._follow, simulator), endless=False)

    def launch(self) -> None:
        """Start every daemon, the first time this is called."""
        if self.launched:
            return
        self.launched = True
        for simulator in self._simulators:
            if isinstance(simulator, Daemon):
                self._start(simulator.name, "run", simulator.run, endless=True)

    async def stop(self, timeout: float) -> Failures:
        """Cancel everything and wait for it; who fails meanwhile, or is left behind because it takes longer."""
        tasks = dict(self._tasks)
        early = set(self.ended)
        for task in tasks:
            task.cancel()
        if not tasks:
            return ()
        _, late = await asyncio.wait(tasks, timeout=timeout)
        text = f"did not end within {timeout:.3g} s"
        failures = [Failure(tasks[task], task.get_name(), "", text) for task in late]
        self._record.went_wrong(tuple(failures))
        for name in self.ended.keys() - early:
            failures.extend(self.ended[name])
        return tuple(sorted(failures))

    def _start(self, name: str, what: str, work: Callable[[], Awaitable[None]], *, endless: bool) -> None:
        task = asyncio.create_task(self._guard(name, what, work, endless=endless), name=what)
        self._tasks[task] = name
        task.add_done_callback(self._tasks.pop)

    async def _guard(self, name: str, what: str, work: Callable[[], Awaitable[None]], *, endless: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await work()
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            failures: Failures = (Failure(name, what, "", "was cancelled from within"),)
        except Exception as error:
            failures = attribute(name, what, error)
        else:
            if not endless or task.cancelling():
                return
            failures = (Failure(name, what, "", "ended early"),)
        self.ended[name] = failures
        self._record.went_wrong(failures)
        if not task.cancelling():
            for failure in failures:
                self._log.error("%s", failure, extra=failure.extra())

    async def _follow(self, simulator: Requeuer) -> None:
        async for _ in simulator.requeue():
            self._requeued()
