"""Whether the whole tree of the State in force is there: green, or red and (once a wave has failed) why.

An event with memory rather than a flag, because injectors and the local node's init wait for it, and because a reader
must be able to tell "not yet" from "failed".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from simnode.agent.failures import Failures, by_simulator, failed
from simnode.contracts import Health


class Staged:
    """Green between a good stage wave and the next one; only the agent turns it. `names`: the simulators'."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = tuple(names)
        self._green = asyncio.Event()
        self._listeners: list[Callable[[Staged], None]] = []
        self.failures: Failures = ()

    def is_set(self) -> bool:
        """True while green."""
        return self._green.is_set()

    def check(self) -> Health:
        """As a probe (contracts.Probe): ok while green."""
        green = self.is_set()
        reason = "" if green else failed("stage", self.failures) if self.failures else "the tree is not staged"
        texts = by_simulator(self.failures)
        every = "" if green or texts else reason
        components = {name: (not texts.get(name, every), texts.get(name, every)) for name in self._names}
        return Health(green, reason, components)

    async def wait(self) -> None:
        """Return once green."""
        await self._green.wait()

    def listen(self, listener: Callable[[Staged], None]) -> None:
        """Call `listener` with this object at every turn and after every failed wave, at once and in the event loop."""
        self._listeners.append(listener)

    def turn_green(self) -> None:
        """A stage wave succeeded."""
        self.failures = ()
        self._green.set()
        self._tell()

    def turn_red(self, failures: Failures = ()) -> None:
        """A wave begins, or one has failed with `failures`, or the agent goes."""
        if self._green.is_set() or failures:
            self.failures = failures
            self._green.clear()
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener(self)
