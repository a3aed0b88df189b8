"""Simulators over a real engine: a tree of files that depends on the structure, and a file outside that names them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

from simnode.contracts import Update, Wanted
from simnode.host import File, Host, Tree
from simnode.simulators import in_thread
from simnode.state import Facts, State
from tests.agent.acting import EPOCH, numbers, state

FILES = 10
LIST = "published/list"


class Staging:
    """Stages files that all hold the number of the structure; every structure lacks one of them."""

    def __init__(self, name: str, host: Host, *, lacking: bool = False) -> None:
        self.name = name
        self._host = host
        self._lacking = lacking

    def tree(self, state: State) -> Tree:
        number = numbers(state)[0]
        wanted = [index for index in range(FILES) if not self._lacking or index != number % FILES]
        return Tree(File(f"tree/{self.name}{index}", str(number).encode()) for index in wanted)

    async def plan(self, state: State, facts: Facts) -> bool:  # noqa: ARG002
        return await in_thread(lambda: bool(self._host.plan(self.name, self.tree(state))))

    async def stage(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await in_thread(lambda: self._host.converge(self.name, self.tree(state)))

    async def discard(self) -> None:
        await in_thread(lambda: self._host.converge(self.name, Tree.empty))

    def ready(self) -> bool:
        return True


class Publishing(Staging):
    """Publishes a list of the files that it has staged."""

    def __init__(self, name: str, host: Host, root: Path) -> None:
        super().__init__(name, host, lacking=True)
        self._root = root

    async def narrow(self, old: Wanted, new: Wanted) -> None:  # noqa: ARG002
        await in_thread(lambda: self._publish(set(named(self._root)) & set(self.tree(new[0]).paths)))

    async def apply(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        await in_thread(lambda: self._publish(set(self.tree(state).paths)))

    async def revoke(self) -> None:
        await in_thread(lambda: self._publish(set()))

    def _publish(self, paths: set[str]) -> None:
        tree = Tree([File(LIST, "\n".join(sorted(paths)).encode())] if paths else [])
        self._host.converge(f"{self.name}.published", tree)


def named(root: Path) -> list[str]:
    """The paths that are published."""
    try:
        return (root / LIST).read_text().splitlines()
    except FileNotFoundError:
        return []


class Changing:
    """A source of ever new structures, one every 10 ms for so many seconds; then it ends."""

    def __init__(self, seconds: float, first: int = 1) -> None:
        self._seconds = seconds
        self._first = first

    async def watch(self) -> AsyncIterator[Update]:
        until = asyncio.get_running_loop().time() + self._seconds
        for number in itertools.count(self._first):
            yield Update(at=EPOCH, state=state(number, generation=number))
            await asyncio.sleep(0.01)
            if asyncio.get_running_loop().time() >= until:
                return

    async def close(self) -> None:
        return
