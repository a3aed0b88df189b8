"""The engine: makes one root hold exactly what each owner's tree says, and takes it away again.

`converge(owner, tree)` is level-triggered: it looks at what is there, draws a plan, and acts; with `Tree.empty` it is
its own exact inverse. It never touches what it did not make, never follows a link, and may die at any system call: the
next converge finishes or undoes what it finds. Blocking code, for threads; several owners may converge at once.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simnode.host.converge import Converge
from simnode.host.errors import ConvergeError, OwnerBusyError
from simnode.host.memory import Memory
from simnode.host.mounts import Mounts
from simnode.host.parents import LEDGER, Ledger, ledger_path
from simnode.host.paths import Beneath, ancestors
from simnode.host.plan import Plan, Step
from simnode.host.records import Parsed, Shelf
from simnode.host.tree import Tree

_OWNER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ABSENT = ("make", "conflict")


class Host:
    """The engine over one existing directory; its records lie in `<root>/state/`.

    `boot_id` is the kernel's (/proc/sys/kernel/random/boot_id): identities recorded under another are void.
    One process at a time may have a Host over a root.
    """

    def __init__(self, root: str | os.PathLike[str], *, boot_id: str, mounts: Mounts | None = None) -> None:
        self.root = Path(root)
        self._records = self.root
        self._ledger = LEDGER
        self._boot_id = boot_id
        self._mounts = mounts or Mounts()
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._ledger_record: Parsed[Ledger] = Parsed()
        self._memories: dict[str, Memory] = {}

    def elsewhere(self, root: str | os.PathLike[str], name: str) -> Host:
        """An engine over another existing directory, of which nothing but surfaces is written there.

        Its records lie beside this one's, its ledger under `name`; both may be at work at once, but owners must differ.
        """
        other = Host(root, boot_id=self._boot_id, mounts=self._mounts)
        other._records, other._ledger = self._records, ledger_path(name)
        other._lock, other._busy = self._lock, self._busy
        return other

    def plan(self, owner: str, tree: Tree) -> Plan:
        """What `converge` would do; changes nothing. Raises OSError if the root or the records cannot be read."""
        with self._one_converge(owner, tree) as converge:
            return converge.plan()

    def converge(self, owner: str, tree: Tree) -> None:
        """Make it so.

        Raises ConvergeError with all failures after everything independent of them was tried, OwnerBusyError if another
        thread is converging this owner, OSError if the root cannot be opened.
        """
        with self._claimed(owner), self._one_converge(owner, tree) as converge:
            converge.run()
        if converge.errors:
            raise ConvergeError(owner, converge.errors)

    def narrow(self, owner: str, tree: Tree) -> None:
        """Take away whatever the owner has put up that `tree` does not have; puts nothing up. Raises as `converge`."""
        absent = {step.path for step in self.plan(owner, tree) if step.action in _ABSENT or _puts_up(step)}
        self.converge(owner, Tree(surface for surface in tree if absent.isdisjoint(_with_ancestors(surface.path))))

    @contextmanager
    def _one_converge(self, owner: str, tree: Tree) -> Iterator[Converge]:
        if not _OWNER.fullmatch(owner):
            raise ValueError(f"owner {owner!r} is not a name: want lower case letters, digits, '.', '_' and '-'")
        with Beneath(self.root) as beneath, Beneath(self._records) as records:
            yield Converge(
                owner,
                tree,
                boot_id=self._boot_id,
                beneath=beneath,
                shelf=Shelf(records, self._ledger),
                mounts=self._mounts,
                memory=self._memories.setdefault(owner, Memory(self._ledger_record)),
                lock=self._lock,
            )

    @contextmanager
    def _claimed(self, owner: str) -> Iterator[None]:
        with self._lock:
            if owner in self._busy:
                raise OwnerBusyError(f"owner {owner} is being converged already")
            self._busy.add(owner)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(owner)


def _with_ancestors(path: str) -> tuple[str, ...]:
    return (path, *ancestors(path))


def _puts_up(step: Step) -> bool:
    """True if a surface does not stand as it is wanted; a directory that stands keeps its inode, whatever its mode."""
    return step.surface is not None and step.action not in ("adopt", "forget")
