"""The protocols between the agent, its simulators and its source of state.

A simulator says what should be there (`tree`, pure) and one engine makes it so; `stage` and `discard` are therefore
exact inverses, and so are `apply` and `revoke`. Everything here may be called again at any time and must be idempotent.
Each simulator does one thing at a time: only a daemon's `run` goes on beside everything else. File work belongs into a
thread; a call that is cancelled ends when its thread has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from simnode.state import Facts, FactValue, State

Wanted = tuple[State, Facts]
"""What simulators make trees from."""


@runtime_checkable
class Simulator(Protocol):
    """Owns one simulated component from staging to discarding."""

    name: str

    async def stage(self, state: State, facts: Facts) -> None:
        """Make everything of this component be there that is not yet visible outside the node."""

    async def discard(self) -> None:
        """Take away all that `stage` ever made; called also after a failed or an unfinished stage, or none at all."""

    def ready(self) -> bool:
        """True once the component is staged and serves; a daemon's also once it does its work."""


@runtime_checkable
class Planner(Protocol):
    """A simulator that can say what a stage would change; the others are staged whenever something changes."""

    async def plan(self, state: State, facts: Facts) -> bool:
        """True if `stage` would change, repair or fail at anything, or has to be told of this State.

        Changes nothing. False promises that the stage may be left out: what devices read comes by `patch` then, and a
        daemon hears of the State by `reload`. Asked only between two stages, never before the first.
        """


@runtime_checkable
class Applier(Protocol):
    """A simulator whose staged artefacts something outside the node acts on; it publishes them after the barrier."""

    async def narrow(self, old: Wanted, new: Wanted) -> None:
        """Withdraw from what is published whatever `new` no longer has, and publish nothing.

        `old` is what the latest `apply` was called with. What is published may be less (an earlier narrowing, an apply
        that failed), and what is missing then must stay so: the tree that it names may be gone already.
        """

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish what names the staged artefacts, or repair that."""

    async def revoke(self) -> None:
        """Withdraw all that `apply` ever published."""


@runtime_checkable
class Patcher(Protocol):
    """A simulator that serves what devices read: what only they read reaches it without a wave."""

    async def patch(self, state: State, facts: Facts) -> None:
        """Let everybody read the runtime of `state`; the trees of its structure are the ones that are staged."""


@runtime_checkable
class Daemon(Protocol):
    """A simulator with work of its own that goes on while the node stands."""

    async def run(self) -> None:
        """Work until cancelled. Called once, after the first good stage wave of all; returning early is a fault."""

    async def reload(self, state: State, facts: Facts) -> None:
        """A later State or later Facts, already staged, for `run` to follow."""


@runtime_checkable
class Progressing(Protocol):
    """A simulator that can say what keeps it from being ready."""

    def progress(self) -> str:
        """What it waits for, in one line, "" for nothing in particular; never waits."""


@runtime_checkable
class Requeuer(Protocol):
    """A simulator that finishes something in the background which then has to be staged."""

    def requeue(self) -> AsyncIterator[object]:
        """One item each time the latest State should be reconciled again; only when that would change something."""


class Report(Protocol):
    """How a simulator tells what it learnt; it is given one when it is made. Any thread may call it."""

    def __call__(self, name: str, value: FactValue) -> None:
        """Make `value` the fact `name` from now on; the value it has already changes nothing."""


class Health(NamedTuple):
    """What a probe answers; `reason` says why not, "" if `ok`, and so in each component."""

    ok: bool
    reason: str
    components: Mapping[str, tuple[bool, str]]


@runtime_checkable
class Probe(Protocol):
    """A question about the agent that never waits and never asks the source."""

    def check(self) -> Health:
        """The answer as of now."""


class Update(msgspec.Struct, frozen=True):
    """One observation from a source: exactly one of `state` and `error` is set."""

    at: datetime
    state: State | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.state is None) == (self.error is None):
            raise ValueError("an update carries a state or an error, never both or neither")


@runtime_checkable
class StateSource(Protocol):
    """Emits the current state at once, then every change; the end of the stream stops the agent."""

    def watch(self) -> AsyncIterator[Update]:
        """The observations, the first at once."""

    async def close(self) -> None:
        """Free what watching holds; `watch` ends."""
