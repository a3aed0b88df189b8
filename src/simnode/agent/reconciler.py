"""The level-triggered heart: does whatever the node lacks to be as the newest State and the latest Facts say.

It holds marks (what is staged, what the image reads, what is published, what the daemons follow) and takes the most
basic step that is lacking: stage, else patch, reload, apply. A failure puts only that step off, and a newer State puts
an end to the wait. One step runs at a time, so waves never overlap and intermediate States are skipped. Requeue and
resync make the stage step lack again although nothing has changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable

from simnode.agent.config import AgentConfig
from simnode.agent.failures import Failures
from simnode.agent.lock import StagingLock
from simnode.agent.record import Record
from simnode.agent.retry import Retry
from simnode.agent.seats import Seat
from simnode.agent.staged import Staged
from simnode.agent.steps import Again, Step, Steps, same_structure
from simnode.agent.supervise import Supervisor
from simnode.contracts import Wanted
from simnode.state import State


class Reconciler:
    """Runs until cancelled. `failing`: what the latest attempt at a step did not get done, as long as it is lacking."""

    def __init__(
        self, config: AgentConfig, seats: tuple[Seat, ...], lock: StagingLock, staged: Staged, record: Record
    ) -> None:
        self._config = config
        self._log = config.log
        self._record = record
        self.supervisor = Supervisor(config.simulators, config.log, record, self.requeue)
        self.steps = Steps(
            config=config, seats=seats, lock=lock, staged=staged, record=record, supervisor=self.supervisor
        )
        self._news = asyncio.Event()
        self._retries = {step: Retry(config.first_retry, config.slowest_retry) for step in Step}
        self._resync_at = math.inf
        self._version = self._signals = 0
        self._waiting: list[tuple[int, asyncio.Future[Failures]]] = []
        self.newest: State | None = None
        self.failing: dict[Step, Failures] = {}

    def accept(self, state: State) -> None:
        """The source has a State; an equal one changes nothing but the generation."""
        news = state != self.newest
        self.newest = state
        self._record.accepted = state.generation
        if news:
            self._version += 1
            for retry in self._retries.values():
                retry.reset()
            self._news.set()
        else:
            self._settle()

    def requeue(self) -> None:
        """Reconcile the newest State again, soon; signals coalesce."""
        self.steps.again = Again.REQUEUE
        self.look_again()

    def look_again(self) -> None:
        """The Facts have changed, or something else that can make a step lack or work."""
        self._signals += 1
        for retry in self._retries.values():
            retry.hurry(asyncio.get_running_loop().time())
        self._news.set()

    async def settled(self, generation: int) -> Failures:
        """Return once a State of this generation or a later one is staged and read, or has failed to be, and why."""
        waiting: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()
        self._waiting.append((generation, waiting))
        self._settle()
        return await waiting

    def give_up(self, failures: Failures) -> None:
        """Nothing more will be done: let nobody wait for it."""
        self._answer(lambda _: failures)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            self._news.clear()
            if self._resync_at <= now():
                self.steps.again = self.steps.again or Again.RESYNC
            lacking = self._lacking()
            due = next((step for step in lacking if self._retries[step].due <= now()), None)
            if due is not None:
                await self._take(due)
                continue
            wake = [self._retries[step].due for step in lacking]
            if Step.STAGE not in lacking:
                wake.append(self._resync_at)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(wake) if min(wake) < math.inf else None):
                    await self._news.wait()

    def _lacking(self) -> tuple[Step, ...]:
        """What the node still needs, in the order in which to try; nothing else matters before it is staged.

        A mere look at what is staged comes after a patch, which somebody waits for.
        """
        if self.newest is None:
            return ()
        wanted = self._wanted(self.newest)
        steps = self.steps
        if not same_structure(steps.structure, wanted):
            return (Step.STAGE,)
        lacking: list[Step] = []
        if steps.runtime != wanted:
            lacking.append(Step.PATCH)
        if steps.again:
            lacking.append(Step.STAGE)
        if not same_structure(steps.followed, wanted):
            lacking.append(Step.RELOAD)
        if steps.unapplied or not same_structure(steps.published, wanted):
            lacking.append(Step.APPLY)
        for step in self.failing.keys() - lacking:
            del self.failing[step]
        return tuple(lacking)

    def _wanted(self, state: State) -> Wanted:
        return state, self._config.reports.facts

    async def _take(self, step: Step) -> None:
        """One attempt at `step` for the newest State and the latest Facts."""
        assert self.newest is not None
        loop = asyncio.get_running_loop()
        version, signals, generation = self._version, self._signals, self.newest.generation
        wanted = self._wanted(self.newest)
        failures = await self.steps.take(step, wanted)
        if step is Step.STAGE and self._config.resync_interval:
            self._resync_at = loop.time() + self._config.resync_interval
        for failure in failures:
            self._log.error("%s", failure, extra={**failure.extra(), "generation": generation})
        if not failures:
            self.failing.pop(step, None)
            self._retries[step].reset()
            self._settle()
            return
        self.failing[step] = failures
        if step in (Step.STAGE, Step.PATCH):
            self._answer(lambda least: failures if least <= generation else None)
        if version == self._version:
            retry = self._retries[step]
            retry.failed(loop.time())
            if signals != self._signals:
                retry.hurry(loop.time())
            delay = retry.due - loop.time()
            self._log.info("%s: next attempt in %.3g s", step.value, delay, extra={"generation": generation})

    def _settle(self) -> None:
        """Answer whoever waits for a generation that is staged and read by now."""
        if self.newest is None or not {Step.STAGE, Step.PATCH}.isdisjoint(self._lacking()):
            return
        generation = self._record.generation = self.newest.generation
        self._answer(lambda least: () if least <= generation else None)

    def _answer(self, answer: Callable[[int], Failures | None]) -> None:
        waiting, self._waiting = self._waiting, []
        for generation, future in waiting:
            failures = answer(generation)
            if failures is None:
                self._waiting.append((generation, future))
            elif not future.done():
                future.set_result(failures)
