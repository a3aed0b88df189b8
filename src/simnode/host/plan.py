"""The plan: what a converge would change, as a pure difference between a tree and what is there.

Drawing it changes nothing. It is empty exactly if a converge would neither act nor fail, so whoever finds it empty may
leave the converge out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from simnode.host.ground import Ground, described
from simnode.host.journal import Entries, Entry
from simnode.host.parents import Ledger
from simnode.host.paths import Beneath, BlockedError, ancestors, parent_of
from simnode.host.surfaces import CharacterDevice, Directory, File, Link, LiveFile, StandIn, Surface
from simnode.host.takeover import gives_way
from simnode.host.tree import Tree

_MISSING = "missing"

Action = Literal["make", "create", "replace", "repair", "adopt", "remove", "forget", "prune", "record", "conflict"]


class Step(Struct, frozen=True):
    """One change at one path, and why.

    make, prune: a directory. create, replace: a surface. repair: in place (mode, size, mount). remove: what we made.
    adopt, forget, record: only the engine's own records change. conflict: a foreign object is in the way, which fails.
    `entry` is what of ours is or was at the path; `early`: it must go before the new tree can come.
    """

    action: Action
    path: str
    reason: str
    surface: Surface | None = None
    entry: Entry | None = None
    early: bool = False

    def __str__(self) -> str:
        return f"{self.action} {self.path}: {self.reason}"


class Plan(Struct, frozen=True):
    """The steps, surfaces in the order of their paths; false if there is nothing to do."""

    owner: str
    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


class Drawing(Struct):
    """What a plan is drawn from: the owner's tree, its journal's entries, the ledger, its record, and the ground."""

    owner: str
    tree: Tree
    entries: Entries
    ledger: Ledger
    record: str
    beneath: Beneath
    ground: Ground

    def plan(self) -> Plan:
        """The plan. What cannot even be looked at is a conflict."""
        unwanted = [
            self._unwanted(path, entry)
            for path, entry in self.entries.items()
            if path not in self.tree or isinstance(self.tree.get(path), Directory)
        ]
        unwanted.sort(key=lambda step: step.path)
        leaving = {step.path for step in unwanted if step.action == "remove"}
        directories = tuple(self._directories(leaving))
        missing = {step.path for step in directories if step.reason == _MISSING}
        surfaces = (self._wanted(surface, missing) for surface in self.tree)
        wanted = (step for step in surfaces if step is not None)
        return Plan(self.owner, (*directories, *wanted, *unwanted, *self._prunable()))

    def _wanted(self, surface: Surface, missing: Container[str]) -> Step | None:
        """What must be done for a surface; below a `missing` directory there is nothing to look at."""
        if isinstance(surface, Directory):
            return None
        path = surface.path
        entry = self.entries.get(path)
        try:
            found = None if parent_of(path) in missing else self._stat(path)
        except OSError as error:
            return Step("conflict", path, f"cannot be looked at: {error.strerror}", surface, entry)
        if found is not None and entry is not None and self._untouched(surface, found, entry):
            return None
        mine = self._resolved(path, found, entry)
        if found is None:
            return Step("create", path, "missing" if mine else "new", surface, mine)
        if mine is not None:
            return self._fitted(surface, found, mine, adopted=mine is not entry)
        if self.ground.is_identical(path, found, surface):
            return Step("forget", path, "was there before us") if entry else None
        if stat.S_ISDIR(found.st_mode) and self._gives_way(path, found):
            return Step("create", path, "a directory of ours gives way", surface, None, early=True)
        return Step(
            "conflict", path, f"occupied by {described(found)} that simnode did not make; move it away", surface
        )

    def _untouched(self, surface: Surface, found: os.stat_result, entry: Entry) -> bool:
        """True for what stands as it was made and as it is wanted: most of what there is, most times.

        `_fitted` would come to the same, by more steps.
        """
        if entry.intent or entry.mode != surface.mode or entry.fingerprint != surface.fingerprint:
            return False
        if type(surface) is File and entry.kind == File.kind:
            identity = (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size)
            return entry.identity == identity and found.st_mode == stat.S_IFREG | surface.mode
        if type(surface) is Link and entry.kind == Link.kind:
            same = entry.identity == (found.st_dev, found.st_ino)
            return same and self.ground.holds(surface.path, found, Link.kind, surface.fingerprint)
        if type(surface) is CharacterDevice and entry.kind == CharacterDevice.kind:
            same = entry.identity == (found.st_dev, found.st_ino)
            number = os.makedev(surface.major, surface.minor)
            return same and found.st_mode == stat.S_IFCHR | surface.mode and found.st_rdev == number
        if type(surface) is StandIn and entry.kind == StandIn.kind:
            mount = self.ground.covered(surface.path, found)
            return mount != 0 and entry.identity == (mount,)
        return False

    def _fitted(self, surface: Surface, found: os.stat_result, mine: Entry, *, adopted: bool) -> Step | None:
        """What must be done for a surface whose path is ours and not empty."""
        path, kind, mode = surface.path, surface.kind, surface.mode
        now = self.ground.identity(path, found, kind)
        same = now == mine.identity and kind == mine.kind and surface.fingerprint == mine.fingerprint
        if not (same and kind == File.kind) and not self.ground.holds(path, found, kind, surface.fingerprint):
            if kind == LiveFile.kind and stat.S_ISREG(found.st_mode):
                return Step("repair", path, "is too small", surface, mine)
            return Step("replace", path, "differs", surface, mine)
        if kind == StandIn.kind and not now[0]:
            return Step("repair", path, "nothing is mounted over it", surface, mine)
        if stat.S_IMODE(found.st_mode) != mode and kind not in (StandIn.kind, Link.kind):
            return Step("replace" if kind == File.kind else "repair", path, "mode differs", surface, mine)
        if same and mine.mode == mode and not adopted:
            return None
        return Step("adopt", path, "stands, but is not yet recorded", surface, mine)

    def _unwanted(self, path: str, entry: Entry) -> Step:
        try:
            found = self._stat(path)
        except OSError as error:
            return Step("conflict", path, f"cannot be looked at: {error.strerror}", None, entry)
        mine = self._resolved(path, found, entry)
        if found is None:
            return Step("forget", path, "is gone")
        if mine is None or not self.ground.is_object(path, found, mine):
            return Step("forget", path, f"{described(found)} that simnode did not make is left alone")
        in_the_way = path in self.tree.directories or any(
            not isinstance(self.tree.get(above), Directory | None) for above in ancestors(path)
        )
        return Step("remove", path, "no longer wanted", None, mine, early=in_the_way)

    def _resolved(self, path: str, found: os.stat_result | None, entry: Entry | None) -> Entry | None:
        """The entry, an intent turned into what became of it; None if the path is not ours."""
        if entry is None or not entry.intent:
            return entry
        if found is not None and self.ground.holds(path, found, entry.kind, entry.fingerprint):
            identity = self.ground.identity(path, found, entry.kind)
            return Entry(entry.kind, entry.mode, entry.fingerprint, identity)
        return entry.was

    def _directories(self, leaving: set[str]) -> Iterator[Step]:
        needs = self.tree.directories
        if self.ledger.needs.get(self.owner, frozenset()) != needs.keys():
            yield Step("record", self.record, f"the directories that {self.owner} needs have changed")
        blocked: set[str] = set()
        missing: set[str] = set()
        for path, mode in needs.items():
            if parent_of(path) in blocked:
                blocked.add(path)
                continue
            try:
                found = None if path in leaving or parent_of(path) in missing else self._stat(path)
                stale = found is not None and gives_way(self.beneath, path, found, self.tree.get(path))
            except OSError as error:
                blocked.add(path)
                yield Step("conflict", path, f"cannot be looked at: {error.strerror}")
                continue
            if found is None:
                missing.add(path)
                yield Step("make", path, _MISSING)
            elif stale:
                yield Step("make", path, "a stale link gives way")
            elif not stat.S_ISDIR(found.st_mode):
                blocked.add(path)
                yield Step("conflict", path, f"{described(found)} is where a directory must be")
            elif mode is not None and stat.S_IMODE(found.st_mode) != mode:
                ours = self.ledger.made_this(path, found)
                yield Step("repair" if ours else "conflict", path, f"mode is not {mode:04o}")

    def _prunable(self) -> Iterator[Step]:
        needed = self.ledger.needed(except_by=self.owner) | self.tree.directories.keys()
        for path in sorted(self.ledger.made.keys() - needed):
            with suppress(OSError):
                found = self._stat(path)
                if found is None or not self.ledger.made_this(path, found):
                    yield Step("record", path, "the directory is gone")
                elif self._is_empty(path):
                    yield Step("prune", path, "nobody needs it")

    def _gives_way(self, path: str, found: os.stat_result) -> bool:
        return path not in self.ledger.needed(except_by=self.owner) and self.ledger.made_this(path, found)

    def _is_empty(self, path: str) -> bool:
        descriptor = self.beneath.open(path)
        try:
            return not os.listdir(descriptor)  # noqa: PTH208
        finally:
            os.close(descriptor)

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return self.ground.stat(path)
        except BlockedError:
            return None
