"""One simulator for each simulated component.

They know nothing of one another. What they have in common is here: staging is to make a tree be there, in a thread; and
what a device file is in this node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal

from simnode.host import CharacterDevice, Host, StandIn, Surface, Tree, TreeError
from simnode.state import Facts, State
from simnode.threads import in_thread

__all__ = ["Devices", "TreeSimulator", "device_files", "in_thread"]

Devices = Literal["node", "stand-in", "none"]
"""What a device file of the node is: a real device node, which takes CAP_MKNOD, a stand-in, or not there at all."""


def device_files(devices: Devices, path: str, major: int, minor: int, mode: int = 0o666) -> Iterator[Surface]:
    """The device file at `path` as this node has them: one surface, or none."""
    if devices != "none":
        yield CharacterDevice(path, major, minor, mode) if devices == "node" else StandIn(path, mode)


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

    def tree_for_others(self, state: State, facts: Facts) -> Tree:
        """The same as `tree`; its TreeError says whose it is."""
        try:
            return self.tree(state, facts)
        except TreeError as error:
            error.owner = self.name
            raise

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
