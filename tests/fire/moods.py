"""Simulators that hang, raise or do both in each of their methods: real ones, under a mood that passes."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from simnode.contracts import Simulator

ASYNC = ("stage", "discard", "narrow", "apply", "revoke", "patch", "plan", "reload")
_ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: RuntimeError("bad temper"),
    lambda: ValueError("a bad temper\nin two lines"),
    lambda: OSError(errno.EIO, "Input/output error", "/some/where"),
    lambda: ExceptionGroup("several", [RuntimeError("bad"), KeyError("worse")]),
    asyncio.CancelledError,
    TimeoutError,
)


@dataclass(frozen=True)
class Mood:
    """`seconds` pass first, `deaf` to a cancellation; then `error`, if any, before or `after` the real thing."""

    seconds: float = 0.0
    deaf: bool = False
    error: Callable[[], BaseException] | None = None
    after: bool = False

    @classmethod
    def any(cls, chance: random.Random) -> Mood:
        """One by chance."""
        seconds = chance.choice((0.0, 0.0, 3.0, 29.0, 50.0, 100.0))
        error = chance.choice((None, *_ERRORS)) if seconds else chance.choice(_ERRORS)
        return cls(seconds, chance.random() < 0.5, error, chance.random() < 0.5)


class Moods:
    """The moods of all simulators, by name and method."""

    def __init__(self) -> None:
        self._moods: dict[tuple[str, str], Mood] = {}
        self._ready = ""

    def take(self, simulator: Simulator) -> None:
        """From now on this simulator is subject to moods."""
        for method in (*ASYNC, "run"):
            if hasattr(simulator, method):
                setattr(simulator, method, self._moody(simulator.name, method, getattr(simulator, method)))
        ready = simulator.ready

        def moody() -> bool:
            if self._ready == simulator.name:
                raise RuntimeError("bad temper")
            return ready()

        simulator.ready = moody  # type: ignore[method-assign]

    def set(self, name: str, method: str, mood: Mood) -> None:
        """For the next calls of this method."""
        self._moods[name, method] = mood

    def silence(self, name: str) -> None:
        """Let `ready` of this one raise."""
        self._ready = name

    @property
    def good(self) -> bool:
        """True if nobody is in any mood."""
        return not self._moods and not self._ready

    def clear(self) -> None:
        """Good temper from now on."""
        self._moods.clear()
        self._ready = ""

    def _moody(
        self, name: str, method: str, original: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def acted(*arguments: Any) -> Any:
            mood = self._moods.get((name, method))
            if mood is None:
                return await original(*arguments)
            await _pass(mood)
            if mood.error is not None and not mood.after:
                raise mood.error()
            result = await original(*arguments)
            if mood.error is not None:
                raise mood.error()
            return result

        return acted


async def _pass(mood: Mood) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + mood.seconds
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if not mood.deaf:
                raise
