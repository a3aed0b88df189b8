"""One simulator for each simulated component.

They know nothing of one another. What they have in common is here: staging is to make a tree be there, in a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from simnode.host import Host, Tree, TreeError
from simnode.state import Facts, State
from simnode.threads import in_thread

__all__ = ["TreeSimulator", "in_thread"]


class TreeSimulator(ABC):
    """A simulator that owns, under its `name`, what its tree says below the engine's root.

    Who has to do more while staging than converging does it in `_make` and `_unmake`, which run in a thread.
    """

    name: str

    def __init__(self, host: Host) -> None:
        self._host = host
        self._staged = False

    @abstractmethod
    def tree(self, state: State, facts: Facts) -> Tree:
        """All surfaces of `state`; pure. Raises TreeError if it names what cannot be one component of a path."""

    async def plan(self, state: State, facts: Facts) -> bool:
        """True if staging would change, repair or fail at anything."""
        return await in_thread(lambda: self._differs(state, facts))

    async def stage(self, state: State, facts: Facts) -> None:
        """Make the tree be there. Raises ConvergeError with everything that could not be made."""
        self._staged = False
        await in_thread(lambda: self._make(state, facts))
        self._staged = True

    async def discard(self) -> None:
        """Take away all that was ever staged."""
        self._staged = False
        await in_thread(self._unmake)

    def ready(self) -> bool:
        """True once staged."""
        return self._staged

    def _differs(self, state: State, facts: Facts) -> bool:
        try:
            return bool(self._host.plan(self.name, self.tree(state, facts)))
        except (TreeError, OSError):
            return True

    def _make(self, state: State, facts: Facts) -> None:
        self._host.converge(self.name, self.tree(state, facts))

    def _unmake(self) -> None:
        self._host.converge(self.name, self._lasting())

    def _lasting(self) -> Tree:
        """What outlives the node on purpose."""
        return Tree.empty
