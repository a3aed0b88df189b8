"""The protocols between the agent, its simulators and its source of state.

A simulator says what should be there (`tree`, pure) and one engine makes it so; `stage` and `discard` are therefore
exact inverses, and so are `apply` and `revoke`. Everything here may be called again at any time and must be idempotent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from simnode.state import Facts, State


@runtime_checkable
class Simulator(Protocol):
    """Owns one simulated component from staging to discarding."""

    name: str

    async def stage(self, state: State, facts: Facts) -> None:
        """Make everything of this component be there that is not yet visible outside the node."""

    async def discard(self) -> None:
        """Take away all that `stage` ever made."""

    def ready(self) -> bool:
        """True once the component is staged and published."""


@runtime_checkable
class Applier(Protocol):
    """A simulator whose staged artefacts something outside the node acts on; it publishes them after the barrier."""

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish what names the staged artefacts."""

    async def revoke(self) -> None:
        """Withdraw all that `apply` ever published."""


@runtime_checkable
class Patcher(Protocol):
    """A simulator that serves what devices read: a change of `State.runtime` alone reaches it without a wave."""

    async def patch(self, state: State, facts: Facts) -> None:
        """Let everybody read the runtime of `state`; its structure is the one that is staged."""


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
