"""The steps that bring a node nearer to what is wanted, and the marks that say how far each has come.

Staging is a whole wave: plan, narrow, the staging lock, everybody's stage, and after the barrier green and the daemons.
An empty plan ends it before anything was touched. Nothing here decides when to take a step, or when to try again.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Coroutine, Iterable, Iterator
from functools import partial

from simnode.agent.config import AgentConfig
from simnode.agent.failures import Failures, attribute
from simnode.agent.lock import StagingLock
from simnode.agent.record import Record
from simnode.agent.seats import Seat
from simnode.agent.staged import Staged
from simnode.agent.supervise import Supervisor
from simnode.agent.waves import Call, fail_fast, to_the_end
from simnode.contracts import Applier, Daemon, Patcher, Planner, Wanted


class Step(enum.Enum):
    """What the node can lack, and the verb of it, the most basic first."""

    STAGE = "stage"
    PATCH = "patch"
    RELOAD = "reload"
    APPLY = "apply"


class Again(enum.IntEnum):
    """Why a wave is due although nothing has changed: somebody asked for it, or it is time to look."""

    NO = 0
    RESYNC = 1
    REQUEUE = 2


class Steps:
    """The steps over all seats; each returns what failed.

    Marks, None as long as there is no such thing: `structure` is staged, `runtime` is read, `followed` by the daemons,
    `published` by every applier, `applied` was the latest attempt at that. `unapplied`: what is published should be
    applied once more.
    """

    def __init__(
        self,
        *,
        config: AgentConfig,
        seats: tuple[Seat, ...],
        lock: StagingLock,
        staged: Staged,
        record: Record,
        supervisor: Supervisor,
    ) -> None:
        self._config = config
        self._seats = seats
        self._lock = lock
        self._staged = staged
        self._record = record
        self._supervisor = supervisor
        self._keepers = 0
        # Asked once: whether one has a role takes longer than most of what follows.
        self._patchers = [(seat, seat.simulator) for seat in seats if isinstance(seat.simulator, Patcher)]
        self._daemons = [(seat, seat.simulator) for seat in seats if isinstance(seat.simulator, Daemon)]
        self._appliers = [(seat, seat.simulator) for seat in seats if isinstance(seat.simulator, Applier)]
        self._planners = [(seat, seat.simulator) for seat in seats if isinstance(seat.simulator, Planner)]
        self.again = Again.NO
        self.structure: Wanted | None = None
        self.runtime: Wanted | None = None
        self.followed: Wanted | None = None
        self.published: Wanted | None = None
        self.applied: Wanted | None = None
        self.unapplied = False

    @property
    def waiting(self) -> str:
        """What the agent itself is held up by, "" if by nothing."""
        return self._lock.waiting

    async def take(self, step: Step, wanted: Wanted) -> Failures:
        """One attempt at the step."""
        match step:
            case Step.STAGE:
                return await self.stage(wanted)
            case Step.PATCH:
                return await self.patch(wanted)
            case Step.RELOAD:
                return await self.reload(wanted)
            case Step.APPLY:
                return await self.apply(wanted)

    async def stage(self, wanted: Wanted) -> Failures:
        """A wave, unless the node stands and its plan is empty."""
        again, self.again = self.again, Again.NO
        changed = not same_structure(self.structure, wanted) or again is Again.REQUEUE
        if self._staged.is_set() and not await self._plan(wanted, changed=changed):
            self.structure = wanted
            self.unapplied = self.unapplied or again is Again.RESYNC
            return ()
        failures = await self._narrow(wanted) or await self._acquire() or await self._stage(wanted)
        if failures:
            self.again = max(self.again, again)
        else:
            self.unapplied = True
        return failures

    async def patch(self, wanted: Wanted) -> Failures:
        """Let the image read it."""
        self.runtime = None
        calls = ((seat, partial(simulator.patch, *wanted)) for seat, simulator in self._patchers)
        failures = await self._everybody("patch", calls)
        if not failures:
            self.runtime = wanted
        return failures

    async def reload(self, wanted: Wanted) -> Failures:
        """Tell the daemons; all are told again if one could not be."""
        calls = ((seat, partial(simulator.reload, *wanted)) for seat, simulator in self._daemons)
        failures = await self._everybody("reload", calls)
        self.followed = None if failures else wanted
        return failures

    async def apply(self, wanted: Wanted) -> Failures:
        """Publish it."""
        self.applied = wanted
        calls = ((seat, partial(simulator.apply, *wanted)) for seat, simulator in self._appliers)
        failures = await self._timed("apply", fail_fast("apply", calls, self._config.deadline))
        self.published = None if failures else wanted
        self.unapplied = bool(failures)
        return failures

    @contextlib.contextmanager
    def keeping_the_lock(self) -> Iterator[None]:
        """The staging lock, if held, is kept until this and every stage have ended, be it past its deadline."""
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            self._release()
            for seat in self._seats:
                if seat.busy_with("stage"):
                    seat.when_idle(self._release)

    async def _plan(self, wanted: Wanted, *, changed: bool) -> bool:
        """True if there is something to stage. Who cannot plan has something if anything has `changed`.

        They are asked one after another until one has: threads that only look get into one another's way.
        """
        if changed and len(self._planners) < len(self._seats):
            return True
        plans: list[bool] = []

        async def ask(planner: Planner) -> None:
            plans.append(await planner.plan(*wanted))

        async def ask_in_turn() -> Failures:
            for seat, planner in self._planners:
                failures = await to_the_end("plan", [(seat, partial(ask, planner))], self._config.deadline)
                if failures or any(plans):
                    return failures
            return ()

        return bool(await self._timed("plan", ask_in_turn())) or any(plans)

    async def _narrow(self, wanted: Wanted) -> Failures:
        """Withdraw what the wave may take away. Before the first, that is what an earlier agent has left."""
        old = self.applied if self.applied is not None else wanted
        if self.applied is not None and same_structure(old, wanted):
            return ()
        self.published = None
        calls = ((seat, partial(simulator.narrow, old, wanted)) for seat, simulator in self._appliers)
        return await self._everybody("narrow", calls)

    async def _acquire(self) -> Failures:
        async def attempt() -> Failures:
            try:
                await self._lock.acquire(self._config.lock_timeout)
            except Exception as error:
                return attribute("agent", "lock", error)
            return ()

        return await self._timed("lock", attempt())

    async def _stage(self, wanted: Wanted) -> Failures:
        with self.keeping_the_lock():
            self._staged.turn_red()
            self.structure = self.runtime = None
            if not same_structure(self.followed, wanted):
                self.followed = None  # whatever becomes of this wave, it may have told the daemons something
            calls = ((seat, partial(seat.simulator.stage, *wanted)) for seat in self._seats)
            failures = await self._everybody("stage", calls)
        if failures:
            self._staged.turn_red(failures)
            return failures
        self.structure = self.runtime = wanted
        self._staged.turn_green()
        generation = wanted[0].generation
        self._config.log.info("staged generation %d", generation, extra={"generation": generation})
        if not self._supervisor.launched:
            self._supervisor.launch()
            self.followed = wanted
        return ()

    def _release(self) -> None:
        if not self._keepers and not any(seat.busy_with("stage") for seat in self._seats):
            self._lock.release()

    async def _everybody(self, action: str, calls: Iterable[Call]) -> Failures:
        return await self._timed(action, to_the_end(action, calls, self._config.deadline))

    async def _timed(self, action: str, work: Coroutine[object, object, Failures]) -> Failures:
        now = asyncio.get_running_loop().time
        began = now()
        failures = await work
        self._record.did(action, now() - began, failures)
        return failures


def same_structure(one: Wanted | None, other: Wanted) -> bool:
    """True if there is `one` and nothing but what devices read differs."""
    return one is not None and one[0].same_structure(other[0]) and one[1].same_structure(other[1])
