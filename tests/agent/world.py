"""A node of names instead of files: what is staged, what is published, and that nothing published is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from simnode.contracts import Wanted
from simnode.state import Facts, State
from tests.agent.acting import Publisher, numbers


@dataclass
class World:
    """What is staged and what is published, by name; `missing`: what was published at some moment and not there."""

    staged: set[int] = field(default_factory=set)
    published: set[int] = field(default_factory=set)

    missing: set[int] = field(default_factory=set)

    def check(self) -> None:
        """To be called at every change."""
        self.missing |= self.published - self.staged


WANTED = {1: {1, 2, 3}, 2: {3, 4}, 3: {1, 5}, 4: {1, 2, 3, 4}}


@dataclass
class Honest(Publisher):
    """Stages and publishes the names of its State one by one; narrows as the contract says."""

    world: World = field(default_factory=World)

    async def stage(self, state: State, facts: Facts) -> None:
        wanted = WANTED[numbers(state)[0]]
        differing = sorted(self.world.staged ^ wanted)
        self._toggle(differing[::2])
        await super().stage(state, facts)
        self._toggle(differing[1::2])

    def _toggle(self, names: list[int]) -> None:
        for name in names:
            self.world.staged ^= {name}
            self.world.check()

    async def apply(self, state: State, facts: Facts) -> None:
        wanted = WANTED[numbers(state)[0]]
        for name in sorted(self.world.published ^ wanted):
            self.world.published ^= {name}
            self.world.check()
        await super().apply(state, facts)

    async def narrow(self, old: Wanted, new: Wanted) -> None:
        self.world.published &= WANTED[numbers(new[0])[0]]
        await super().narrow(old, new)

    async def revoke(self) -> None:
        await super().revoke()
        self.world.published.clear()

    async def discard(self) -> None:
        await super().discard()
        self.world.staged.clear()
        self.world.check()
