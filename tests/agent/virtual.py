"""An event loop whose clock jumps: when nothing is ready it is at once the time of the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlockError(AssertionError):
    """Raised when nothing is ready and no timer is set: in the real world this would wait for ever."""


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.sleeps: list[float] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise DeadlockError("nothing is ready and no timer is set")
            self.now += max(0.0, timeout)
            self.sleeps.append(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at time 0. Only for coroutines that wait for timers and for one another: threads have no virtual time."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    @property
    def sleeps(self) -> list[float]:
        """How long the loop has slept, each time."""
        return self._jumping.sleeps


def run(main: Coroutine[Any, Any, T]) -> T:
    """What `main` returns, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
