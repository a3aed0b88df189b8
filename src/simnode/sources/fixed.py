"""The simplest source: one State that is known already, and never another; nothing is read or watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from simnode.contracts import Update
from simnode.state import State


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class FixedSource:
    """Emits `state` once to every watcher, then keeps the stream open until `close`."""

    def __init__(self, state: State, now: Callable[[], datetime] = utc_now) -> None:
        self._state = state
        self._now = now
        self._closed = asyncio.Event()

    async def watch(self) -> AsyncIterator[Update]:
        """The one observation, at once; ends when the source is closed."""
        yield Update(at=self._now(), state=self._state)
        await self._closed.wait()

    async def close(self) -> None:
        """End every stream."""
        self._closed.set()
