"""Tells container runtimes about the node: CDI specs in the directories where they look, and the hook that those name.

Nothing published ever names what is missing. The specs are made from the tree that is staged; before a wave each is
narrowed to what it will still say afterwards, so a container that asks for a GPU which stays gets it at any time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from simnode.contracts import Wanted
from simnode.host import File, Host, Tree
from simnode.host.paths import Beneath
from simnode.simulators import TreeSimulator, in_thread
from simnode.simulators.cri.contents import HOOK, Node, specs
from simnode.simulators.cri.spec import Spec, common, decode, encode
from simnode.state import Facts, State

OWNER = "cri.published"
_ABSENT = ("make", "create", "conflict")
_LARGEST = 16 << 20

Staged = Callable[[State, Facts], Tree]


class Runtimes(msgspec.Struct, frozen=True):
    """The host's container runtimes, as we reach them.

    `host` is the engine over the host's root, `directories` are those of specs, below that root, and `node_root` is the
    node root's absolute path as the host knows it.
    """

    host: Host
    directories: tuple[str, ...]
    node_root: str


class CRI(TreeSimulator):
    """Publishes the CDI specs of what `staged` says that the other simulators stage; `hook` is our program's bytes."""

    name = "cri"

    def __init__(self, host: Host, runtimes: Runtimes, hook: bytes, staged: Staged) -> None:
        super().__init__(host)
        self._runtimes = runtimes
        self._hook = File(HOOK, hook, 0o755)
        self._others = staged
        self._published = False
        self._made: tuple[State, Facts, dict[str, Spec]] | None = None

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """The hook."""
        return Tree([self._hook] if self._runtimes.directories else [])

    def published(self, state: State, facts: Facts) -> Tree:
        """The specs, below the host's root."""
        wanted = self._specs(state, facts)
        return Tree(
            File(f"{directory}/{name}", encode(spec))
            for directory in self._runtimes.directories
            for name, spec in wanted.items()
        )

    async def stage(self, state: State, facts: Facts) -> None:
        """As every simulator; not ready again before the next `apply`."""
        self._published = False
        await super().stage(state, facts)

    async def narrow(self, old: Wanted, new: Wanted) -> None:  # noqa: ARG002
        """Let each spec that is there say no more than `new` will."""
        await in_thread(lambda: self._narrow(*new))

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish; ConvergeError names what is in the way.

        Applied again, as at each resync, it stays ready meanwhile; it is not ready after a failure.
        """
        try:
            await in_thread(lambda: self._runtimes.host.converge(OWNER, self.published(state, facts)))
        except BaseException:
            self._published = False
            raise
        self._published = True

    async def revoke(self) -> None:
        """Withdraw every spec."""
        self._published = False
        await in_thread(lambda: self._runtimes.host.converge(OWNER, Tree.empty))

    def ready(self) -> bool:
        """True once staged and published."""
        return self._published and super().ready()

    def _specs(self, state: State, facts: Facts) -> dict[str, Spec]:
        """The specs; made once for each State, for all that is staged has to be listed for them."""
        if self._made is None or self._made[0] is not state or self._made[1] is not facts:
            tree = self._others(state, facts) | self.tree(state, facts)
            self._made = state, facts, specs(state, Node(self._runtimes.node_root, tree))
        return self._made[2]

    def _narrow(self, state: State, facts: Facts) -> None:
        host = self._runtimes.host
        wanted = Tree(self._narrowed(self._specs(state, facts)))
        absent = {step.path for step in host.plan(OWNER, wanted) if step.action in _ABSENT}
        host.converge(OWNER, Tree(surface for surface in wanted if surface.path not in absent))

    def _narrowed(self, wanted: dict[str, Spec]) -> Iterator[File]:
        for directory in self._runtimes.directories:
            for name, spec in wanted.items():
                path = f"{directory}/{name}"
                there = self._there(path)
                both = common(there, spec) if there else None
                if both:
                    yield File(path, encode(both))

    def _there(self, path: str) -> Spec | None:
        """The spec that is published at `path`, None if there is none that could be ours.

        What somebody has planted there is not waited for, and a link not followed.
        """
        try:
            with Beneath(self._runtimes.host.root) as beneath, os.fdopen(beneath.open(path), "rb") as file:
                content = file.read(_LARGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
        except OSError:
            return None
        return decode(content)
