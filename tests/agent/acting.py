"""Simulators, sources and States written for the tests: they do what a script says and everybody writes one log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from simnode.agent import Agent, AgentConfig, Reports, Staged
from simnode.contracts import Report, Simulator, Update, Wanted
from simnode.state import DeviceRuntime, Facts, LoadSpec, NodeMeta, NodeShape, Runtime, SoftwareVersions, State

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def state(structure: int, runtime: int = 0, generation: int = 1) -> State:
    """A State; two of them have the same structure or runtime if they have the same number."""
    return State(
        generation=generation,
        node=NodeMeta(node_name=f"structure-{structure}"),
        software=SoftwareVersions("550.163.01", "12.550.163.01", "12.4"),
        node_shape=NodeShape(num_gpus=0),
        devices=(),
        runtime=Runtime((DeviceRuntime(load=LoadSpec(seed=runtime)),)),
    )


def numbers(state: State) -> tuple[int, int]:
    """The structure's and the runtime's number of a State made by `state`."""
    return int(state.node.node_name.removeprefix("structure-")), state.runtime.devices[0].load.seed


@dataclass(frozen=True)
class Act:
    """What a call does: take `seconds`, heed a cancellation only if it is not `deaf`, then fail with `error` if set."""

    seconds: float = 0.0
    error: str = ""
    deaf: bool = False


@dataclass(frozen=True)
class Entry:
    """One line of the log: at `time`, `who` began or ended ("", "cancelled" or an error's text) doing `what`."""

    time: float
    who: str
    what: str
    phase: str
    numbers: tuple[int, int] | None = None
    outcome: str = ""


Log = list[Entry]


@dataclass
class Stager:
    """A simulator that stages and discards; `script` holds the acts of successive calls by verb, the last for ever."""

    name: str
    log: Log
    script: dict[str, list[Act]] = field(default_factory=dict)
    running: int = 0
    serves: bool = True

    async def stage(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await self._act("stage", state)

    async def discard(self) -> None:
        await self._act("discard")

    def ready(self) -> bool:
        return self.serves

    async def _act(self, what: str, state: State | None = None) -> None:
        acts = self.script.get(what, [Act()])
        act = acts.pop(0) if len(acts) > 1 else acts[0]
        about = numbers(state) if state is not None else None
        outcome = "cancelled"
        self._note(what, "begin", about)
        self.running += 1
        try:
            await self._pass(act)
            outcome = act.error
        finally:
            self.running -= 1
            self._note(what, "end", about, outcome)
        if act.error:
            raise OSError(act.error)

    async def _pass(self, act: Act) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + act.seconds
        while act.deaf and loop.time() < until:
            try:
                await asyncio.sleep(until - loop.time())
            except asyncio.CancelledError:
                continue
        await asyncio.sleep(until - loop.time()) if until < math.inf else await asyncio.Event().wait()

    def _note(self, what: str, phase: str, about: tuple[int, int] | None, outcome: str = "") -> None:
        time = asyncio.get_running_loop().time()
        self.log.append(Entry(round(time, 6), self.name, what, phase, about, outcome))


@dataclass
class Publisher(Stager):
    """A simulator that also publishes."""

    async def apply(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await self._act("apply", state)

    async def revoke(self) -> None:
        await self._act("revoke")

    async def narrow(self, old: Wanted, new: Wanted) -> None:  # noqa: ARG002
        await self._act("narrow", new[0])


@dataclass
class Reader(Stager):
    """A simulator that also serves what devices read."""

    async def patch(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await self._act("patch", state)


@dataclass
class Keeper(Stager):
    """A simulator with a daemon, which works for as long as the act of "run" says, for ever if it says nothing."""

    async def run(self) -> None:
        acts = self.script.get("run", [Act(math.inf)])
        self._note("run", "begin", None)
        outcome = "cancelled"
        try:
            await self._pass(acts[0])
            outcome = acts[0].error
        finally:
            self._note("run", "end", None, outcome)
        if outcome:
            raise OSError(outcome)

    async def reload(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await self._act("reload", state)


@dataclass
class Signaller(Stager):
    """A simulator that asks for a requeue at these times, and may report a fact then."""

    signals: tuple[float, ...] = ()
    report: Report | None = None

    async def requeue(self) -> AsyncIterator[None]:
        for time in self.signals:
            await asyncio.sleep(time - asyncio.get_running_loop().time())
            if self.report is None:
                yield
            else:
                self.report("signalled", int(time))


@dataclass
class Planned(Stager):
    """A simulator whose tree is only the number of the structure modulo `kinds`, and which knows what is there."""

    kinds: int = 2
    there: int | None = None

    async def plan(self, state: State, facts: Facts) -> bool:  # noqa: ARG002
        await self._act("plan", state)
        return self.there != numbers(state)[0] % self.kinds

    async def stage(self, state: State, facts: Facts) -> None:
        self.there = None
        await super().stage(state, facts)
        self.there = numbers(state)[0] % self.kinds


@dataclass
class Schedule:
    """A source that emits each State, error or exception at its time; its stream takes `farewell` seconds to end."""

    arrivals: Iterable[tuple[float, State | str | Exception]]
    endless: bool = True
    farewell: float = 0.0
    closed_at: float | None = None

    async def watch(self) -> AsyncIterator[Update]:
        loop = asyncio.get_running_loop()
        for time, what in self.arrivals:
            await asyncio.sleep(time - loop.time())
            if isinstance(what, Exception):
                raise what
            yield Update(at=EPOCH, error=what) if isinstance(what, str) else Update(at=EPOCH, state=what)
        try:
            if self.endless:
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.farewell)

    async def close(self) -> None:
        self.closed_at = asyncio.get_running_loop().time()


class Node:
    """An agent with its simulators over a schedule, and the turns of `staged` in the same log as everything else."""

    def __init__(
        self,
        simulators: Iterable[Simulator],
        source: Schedule,
        log: Log,
        *,
        quiet: bool = False,
        reports: Reports | None = None,
        lock: Path | None = None,
        life: Path | None = None,
        **times: float,
    ) -> None:
        logger = logging.Logger("quiet", logging.CRITICAL) if quiet else logging.getLogger("tests.agent")
        self.log = log
        config = AgentConfig(
            tuple(simulators),
            source,
            logger,
            staging_lock_path=lock,
            lifetime_lock_path=life,
            reports=reports or Reports(),
            resync_interval=0,
        )
        self.agent = Agent(msgspec.structs.replace(config, **times))
        self.agent.staged().listen(self._turned)

    def _turned(self, staged: Staged) -> None:
        colour = "green" if staged.is_set() else "red"
        time = asyncio.get_running_loop().time()
        self.log.append(Entry(round(time, 6), "agent", "staged", colour, outcome="; ".join(map(str, staged.failures))))

    async def live(self, seconds: float) -> None:
        """Run for `seconds`, then be cancelled. Raises what `run` raises, cancellation aside."""
        running = asyncio.create_task(self.agent.run())
        await asyncio.wait({running}, timeout=seconds)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def story(log: Log, *whats: str) -> list[str]:
    """The log as short lines, of these verbs only: "12 name stage end 1/0 no space"."""
    lines = []
    for entry in log:
        if entry.what in whats:
            about = f"{entry.numbers[0]}/{entry.numbers[1]}" if entry.numbers else ""
            parts = (f"{entry.time:g}", entry.who, entry.what, entry.phase, about, entry.outcome)
            lines.append(" ".join(part for part in parts if part))
    return lines
