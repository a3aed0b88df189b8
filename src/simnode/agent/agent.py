"""The agent: keeps a node as the newest State of its source says, and in the end undoes all of it.

It only puts the parts together. It ends when it is cancelled or when its source does, and then withdraws and discards
everything, whatever happened before. It never asks the source for anything but its stream, and never touches the disk
itself, its locks aside.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from simnode.agent.config import AgentConfig
from simnode.agent.failures import Failure, Failures, ShutdownError
from simnode.agent.lock import StagingLock, for_life
from simnode.agent.probes import Liveness, Readiness
from simnode.agent.reconciler import Reconciler
from simnode.agent.record import Record
from simnode.agent.seats import Seat
from simnode.agent.shutdown import regardless, shut_down
from simnode.agent.staged import Staged
from simnode.contracts import Probe
from simnode.state import Facts, State


class Agent:
    """Reconciles until cancelled. `record`: what it has done so far."""

    def __init__(self, config: AgentConfig) -> None:
        names = [simulator.name for simulator in config.simulators]
        if len(set(names)) < len(names):
            raise ValueError(f"two simulators of one name among {', '.join(sorted(names))}")
        self.record = Record()
        self._config = config
        self._seats = tuple(Seat(simulator) for simulator in config.simulators)
        self._lock = StagingLock(config.staging_lock_path)
        self._staged = Staged(names)
        self._reconciler = Reconciler(config, self._seats, self._lock, self._staged, self.record)

    @property
    def state(self) -> State | None:
        """The newest State that the source gave."""
        return self._reconciler.newest

    @property
    def facts(self) -> Facts:
        """What simulators have learnt so far."""
        return self._config.reports.facts

    def liveness(self) -> Probe:
        """Whether the latest stage wave went well."""
        return Liveness(self._staged, self._config.simulators)

    def readiness(self) -> Probe:
        """Whether everything is staged, published and served."""
        return Readiness(self._staged, self._reconciler, self._config.simulators)

    def staged(self) -> Staged:
        """Whether the whole tree is there: a probe, and an event to wait for or listen to."""
        return self._staged

    async def settled(self, generation: int) -> Failures:
        """Wait until a State of this generation or a later one is staged and can be read; what failed instead, if any.

        Publishing is not waited for. A failure is the first attempt's; others follow without anybody's asking.
        """
        return await self._reconciler.settled(generation)

    async def run(self) -> None:
        """Reconcile until cancelled or until the source's stream ends, then shut down.

        Raises LockHeldError before doing anything if another agent keeps this root, what the source raised, and
        ShutdownError if anything was left behind.
        """
        with for_life(self._config.lifetime_lock_path):
            await self._run()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._config.reports.follow(partial(_from_any_thread, loop, self._reconciler.look_again))
        self._reconciler.supervisor.listen()
        watching = asyncio.create_task(self._watch(), name="watch")
        reconciling = asyncio.create_task(self._reconciler.run(), name="reconcile")
        tasks = {watching, reconciling}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            with self._reconciler.steps.keeping_the_lock():
                for task in tasks:
                    task.cancel()
                failures = await regardless(self._shut_down(tasks))
            if failures:
                raise ShutdownError(failures)

    async def _watch(self) -> None:
        async for update in self._config.source.watch():
            self.record.observed(update)
            if update.state is None:
                self._config.log.error("source: %s", update.error, extra={"simulator": "source"})
            else:
                self._reconciler.accept(update.state)

    async def _shut_down(self, tasks: set[asyncio.Task[None]]) -> Failures:
        self._staged.turn_red()
        self._reconciler.give_up((Failure("agent", "stage", "", "the agent is being ended"),))
        return await shut_down(
            config=self._config,
            seats=self._seats,
            lock=self._lock,
            supervisor=self._reconciler.supervisor,
            tasks=tasks,
            record=self.record,
        )


def _from_any_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has been closed, and with it the agent
        loop.call_soon_threadsafe(call)
