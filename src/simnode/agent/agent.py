"""The level-triggered reconciler: makes the node what the newest State says, and in the end undoes all of it.

It holds three marks (the State whose structure is staged, the one whose runtime the image reads, the one that is
published) and does whatever the newest State still lacks: stage, else patch, else apply. A failure puts only that step
off; a newer State puts an end to the wait. One thing runs at a time, so waves never overlap and intermediate States are
skipped. It ends when it is cancelled or when its source does, and then withdraws and discards everything, whatever
happened before. It never asks the source for anything but its stream, and never touches the disk itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
from collections.abc import Coroutine
from functools import partial

import msgspec

from simnode.agent.failures import Failures, ShutdownError, attribute
from simnode.agent.retry import Retry
from simnode.agent.seats import Seat
from simnode.agent.staged import Staged
from simnode.agent.waves import fail_fast, to_the_end
from simnode.contracts import Applier, Patcher, Simulator, StateSource
from simnode.state import Facts, State


class AgentConfig(msgspec.Struct, frozen=True):
    """What an agent is made of; all times in seconds.

    `deadline` bounds each stage, patch and apply of one simulator. `shutdown_timeout` bounds the whole way down; what
    comes before discarding gets at most half of it.
    """

    simulators: tuple[Simulator, ...]
    source: StateSource
    log: logging.Logger
    shutdown_timeout: float = 30.0
    deadline: float = 30.0
    first_retry: float = 1.0
    slowest_retry: float = 60.0


class Step(enum.Enum):
    """What a State can still lack, and the verb of it."""

    STAGE = "stage"
    PATCH = "patch"
    APPLY = "apply"


class Agent:
    """Reconciles until cancelled; `staged` tells whether the whole tree is there."""

    def __init__(self, config: AgentConfig) -> None:
        names = [simulator.name for simulator in config.simulators]
        if len(set(names)) < len(names):
            raise ValueError(f"two simulators of one name among {', '.join(sorted(names))}")
        self.staged = Staged()
        self._config = config
        self._log = config.log
        self._seats = tuple(Seat(simulator) for simulator in config.simulators)
        self._facts = Facts()
        self._news = asyncio.Event()
        self._newest: State | None = None
        self._structure: State | None = None
        self._runtime: State | None = None
        self._published: State | None = None
        self._retries = {step: Retry(config.first_retry, config.slowest_retry) for step in Step}

    async def run(self) -> None:
        """Reconcile until cancelled or until the source's stream ends, then shut down.

        Raises what the source raised, and ShutdownError if anything was left behind.
        """
        watching = asyncio.create_task(self._watch(), name="watch")
        reconciling = asyncio.create_task(self._reconcile(), name="reconcile")
        try:
            done, _ = await asyncio.wait({watching, reconciling}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (watching, reconciling):
                task.cancel()
            failures = await _regardless(self._shut_down({watching, reconciling}))
            if failures:
                raise ShutdownError(failures)

    async def _watch(self) -> None:
        async for update in self._config.source.watch():
            if update.state is None:
                self._log.warning("source: %s", update.error)
            elif update.state != self._newest:
                self._newest = update.state
                for retry in self._retries.values():
                    retry.reset()
                self._news.set()

    async def _reconcile(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            self._news.clear()
            lacking = self._lacking()
            due = next((step for step in lacking if self._retries[step].due <= now()), None)
            if due is not None:
                await self._take(due)
                continue
            delay = min((self._retries[step].due for step in lacking), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(delay):
                    await self._news.wait()

    def _lacking(self) -> tuple[Step, ...]:
        """What the newest State still needs, the most basic first; nothing else matters before it is staged."""
        newest = self._newest
        if newest is None:
            return ()
        if self._structure is None or not newest.same_structure(self._structure):
            return (Step.STAGE,)
        lacking = []
        if newest != self._runtime:
            lacking.append(Step.PATCH)
        if self._published is None:
            lacking.append(Step.APPLY)
        return tuple(lacking)

    async def _take(self, step: Step) -> None:
        """One attempt at `step` for the newest State."""
        state = self._newest
        assert state is not None
        failures = await {Step.STAGE: self._stage, Step.PATCH: self._patch, Step.APPLY: self._apply}[step](state)
        if not failures:
            self._log.info("%s: generation %d done", step.value, state.generation)
            self._retries[step].reset()
            return
        for failure in failures:
            self._log.error("%s", failure)
        if state is not self._newest:
            return
        delay = self._retries[step].failed(asyncio.get_running_loop().time())
        self._log.info("%s: next attempt in %g s", step.value, delay)

    async def _stage(self, state: State) -> Failures:
        self.staged.turn_red()
        self._structure = self._runtime = self._published = None
        calls = ((seat, partial(seat.simulator.stage, state, self._facts)) for seat in self._seats)
        failures = await to_the_end("stage", calls, self._config.deadline)
        if failures:
            self.staged.turn_red(failures)
        else:
            self._structure = self._runtime = state
            self.staged.turn_green()
        return failures

    async def _patch(self, state: State) -> Failures:
        self._runtime = None
        calls = (
            (seat, partial(seat.simulator.patch, state, self._facts))
            for seat in self._seats
            if isinstance(seat.simulator, Patcher)
        )
        failures = await to_the_end("patch", calls, self._config.deadline)
        if not failures:
            self._runtime = state
        return failures

    async def _apply(self, state: State) -> Failures:
        calls = (
            (seat, partial(seat.simulator.apply, state, self._facts))
            for seat in self._seats
            if isinstance(seat.simulator, Applier)
        )
        failures = await fail_fast("apply", calls, self._config.deadline)
        if not failures:
            self._published = state
        return failures

    async def _shut_down(self, tasks: set[asyncio.Task[None]]) -> Failures:
        """Revoke everywhere, then discard everywhere, whatever fails on the way and however far staging had come."""
        self.staged.turn_red()
        now = asyncio.get_running_loop().time
        until = now() + self._config.shutdown_timeout
        half = self._config.shutdown_timeout / 2
        await asyncio.wait(tasks, timeout=half)
        revokes = ((seat, seat.simulator.revoke) for seat in self._seats if isinstance(seat.simulator, Applier))
        revoked, closed = await asyncio.gather(to_the_end("revoke", revokes, until - half - now()), self._close(half))
        discards = ((seat, seat.simulator.discard) for seat in self._seats)
        discarded = await to_the_end("discard", discards, until - now())
        failures = (*closed, *revoked, *discarded)
        for failure in failures:
            self._log.error("%s", failure)
        return failures

    async def _close(self, timeout: float) -> Failures:
        try:
            async with asyncio.timeout(timeout):
                await self._config.source.close()
        except Exception as error:
            return attribute("source", "close", error)
        return ()


async def _regardless(work: Coroutine[object, object, Failures]) -> Failures:
    """The result of `work`, which runs to its end however often the caller is cancelled meanwhile."""
    task = asyncio.create_task(work, name="shutdown")
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()
