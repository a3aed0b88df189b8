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

from simnode.host.converge import Converge
from simnode.host.errors import ConvergeError, OwnerBusyError
from simnode.host.mounts import Mounts
from simnode.host.paths import Beneath
from simnode.host.plan import Plan
from simnode.host.tree import Tree

_OWNER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Host:
    """The engine over one existing directory; its records lie in `<root>/state/`.

    `boot_id` is the kernel's (/proc/sys/kernel/random/boot_id): identities recorded under another are void.
    One process at a time may have a Host over a root.
    """

    def __init__(self, root: str | os.PathLike[str], *, boot_id: str, mounts: Mounts | None = None) -> None:
        self._root = root
        self._boot_id = boot_id
        self._mounts = mounts or Mounts()
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def plan(self, owner: str, tree: Tree) -> Plan:
        """What `converge` would do; changes nothing. Raises OSError if the root cannot be opened."""
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

    @contextmanager
    def _one_converge(self, owner: str, tree: Tree) -> Iterator[Converge]:
        if not _OWNER.fullmatch(owner):
            raise ValueError(f"owner {owner!r} is not a name: want lower case letters, digits, '.', '_' and '-'")
        with Beneath(self._root) as beneath:
            yield Converge(owner, tree, boot_id=self._boot_id, beneath=beneath, mounts=self._mounts, lock=self._lock)

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
