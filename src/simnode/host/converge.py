"""One converge: from a plan to a root that holds what the tree says.

The order is what keeps every moment consistent. All intents are written down; what blocks the new tree goes;
directories appear, then surfaces, then links after what they lead to; only then goes what is no longer wanted, links
first; the ledger prunes, and the journal says what became of it all. A failure takes with it only what depends on it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from simnode.host import journal, parents, records
from simnode.host.acts import Acts
from simnode.host.errors import SurfaceError
from simnode.host.ground import Ground
from simnode.host.journal import Entries, Entry
from simnode.host.memory import Memory, Standing, look
from simnode.host.mounts import Mounts
from simnode.host.parents import Ledger, Parents
from simnode.host.paths import STATE, Beneath, parent_of
from simnode.host.plan import Drawing, Plan, Step
from simnode.host.records import Shelf
from simnode.host.surfaces import Link
from simnode.host.tree import Tree, referenced_first, target_of


class Converge:
    """One converge of one owner. `lock` guards the records that owners share."""

    def __init__(
        self,
        owner: str,
        tree: Tree,
        *,
        boot_id: str,
        beneath: Beneath,
        shelf: Shelf,
        mounts: Mounts,
        memory: Memory,
        lock: threading.Lock,
    ) -> None:
        self._owner = owner
        self._tree = tree
        self._boot_id = boot_id
        self._beneath = beneath
        self._shelf = shelf
        self._memory = memory
        self._lock = lock
        self._ground = Ground(beneath, mounts)
        self._acts = Acts(owner, beneath, mounts, self._ground)
        self._entries: dict[str, Entry] = {}
        self._written: Entries = {}
        self._failed: set[str] = set()
        self._held: set[str | None] = set()
        self.errors: list[SurfaceError] = []
        self._parents = Parents(
            beneath, shelf, boot_id, owner=owner, tree=tree, parsed=memory.ledger, errors=self.errors
        )

    def plan(self) -> Plan:
        """What there is to do; changes nothing."""
        with suppress(records.DamagedError):
            self._written = self._journal()
        return self._planned()

    def run(self) -> None:
        """Do it; what fails is in `errors`. Records that cannot be read end it at once, as death would."""
        try:
            with self._lock:
                self._recover()
            self._acts.sweep({parent_of(path) for path, entry in self._written.items() if entry.intent})
            plan = self._planned()
            if plan:
                self._entries = dict(self._written)
                self._carry_out(plan)
        except OSError as error:
            self.errors.append(SurfaceError.of(STATE, "record", error, "use"))

    def _planned(self) -> Plan:
        """The plan, drawn only if anything is not as it was when it was last found empty."""
        ledger = Ledger()
        with suppress(records.DamagedError):
            ledger = parents.load(self._shelf, self._boot_id, self._memory.ledger)
        before = time.time_ns()
        sight = look(self._tree, self._beneath, self._ground)
        known = self._memory.standing
        if known is not None and known.is_of(self._tree, self._written, ledger) and known.sight == sight:
            return Plan(self._owner)
        drawing = Drawing(
            owner=self._owner,
            tree=self._tree,
            entries=self._written,
            ledger=ledger,
            record=self._shelf.ledger,
            beneath=self._beneath,
            ground=self._ground,
        )
        plan = drawing.plan()
        self._memory.standing = None
        if sight is not None and not plan and sight.settled(before) and ledger.made.keys() <= ledger.needed():
            self._memory.standing = Standing(self._tree, self._written, ledger, sight)
        return plan

    def _journal(self) -> Entries:
        return journal.load(self._shelf.beneath, self._owner, self._boot_id, self._memory.journal)

    def _recover(self) -> None:
        """Load the journal, set a damaged one aside, and remove what a killed run had prepared of the records."""
        path = journal.journal_path(self._owner)
        try:
            self._written = self._journal()
        except records.DamagedError:
            records.set_aside(self._shelf.beneath, path)
        with suppress(OSError):
            records.sweep(self._shelf.beneath, path)
            records.sweep(self._shelf.beneath, self._shelf.ledger)
            if not self._written:
                records.tidy(self._shelf.beneath)

    def _carry_out(self, plan: Plan) -> None:
        for step in plan:
            concerned = step.surface or step.entry
            if step.action == "conflict" and concerned is not None:
                self.errors.append(SurfaceError(step.path, concerned.kind, None, step.reason))
                self._failed.add(step.path)
            elif step.action == "forget":
                self._entries.pop(step.path, None)
        puts = [step for step in plan if step.action in ("create", "replace")]
        removals = [step for step in plan if step.action == "remove"]
        if not self._write_ahead(puts):
            self._failed.update(step.path for step in puts)
            puts = []
        self._remove_all([step for step in removals if step.early])
        with self._lock:
            giving_way = [step.path for step in puts if step.early]
            lost = self._parents.prepare(giving_way)
        self._put_all(plan, puts, lost)
        self._remove_all([step for step in removals if not step.early])
        with self._lock:
            self._parents.settle()
        self._write(self._entries)

    def _write_ahead(self, puts: list[Step]) -> bool:
        intents = {step.path: Entry.ahead(step.surface, step.entry) for step in puts if step.surface is not None}
        return not intents or self._write(self._entries | intents)

    def _put_all(self, plan: Plan, puts: list[Step], lost: set[str]) -> None:
        links = {step.path: step for step in puts if isinstance(step.surface, Link)}
        targets = {path: step.surface.fingerprint for path, step in links.items() if step.surface is not None}
        for step in puts:
            if step.path not in links:
                self._put(step, lost)
        for step in plan:
            if step.surface is not None and step.action in ("repair", "adopt"):
                self._put(step, lost)
        for path in referenced_first(targets):
            leads_to = target_of(path, targets[path])
            if leads_to in self._failed and parent_of(path) not in lost:
                text = f"not made, because {leads_to}, to which it leads, could not be made"
                self._fail(links[path], SurfaceError(path, Link.kind, None, text))
            else:
                self._put(links[path], lost)

    def _put(self, step: Step, lost: set[str]) -> None:
        surface = step.surface
        if surface is None:
            return
        if parent_of(step.path) in lost:
            self._fail(step, None)
            return
        try:
            match step.action:
                case "create":
                    identity = self._acts.create(surface)
                case "replace":
                    identity = self._acts.replace(surface)
                case "repair":
                    identity = self._acts.repair(surface)
                case _:
                    identity = self._acts.identity(surface)
        except OSError as error:
            self._fail(step, SurfaceError.of(step.path, surface.kind, error, step.action))
            if step.action in ("create", "replace"):
                self._entries[step.path] = Entry.ahead(surface, step.entry)
        else:
            self._entries[step.path] = Entry.done(surface, identity)

    def _fail(self, step: Step, error: SurfaceError | None) -> None:
        if error is not None:
            self.errors.append(error)
        self._failed.add(step.path)
        if step.entry is not None and step.entry.kind == Link.kind:
            self._held.add(target_of(step.path, step.entry.fingerprint))

    def _remove_all(self, steps: list[Step]) -> None:
        """Remove links before what they lead to; whatever a link that had to stay leads to stays as well."""
        entries = {step.path: step.entry for step in reversed(steps) if step.entry is not None}
        targets = {path: entry.fingerprint for path, entry in entries.items() if entry.kind == Link.kind}
        for path in [*reversed(referenced_first(targets)), *(path for path in entries if path not in targets)]:
            stays = path in self._held
            if not stays:
                try:
                    self._acts.remove(path, entries[path])
                    del self._entries[path]
                except OSError as error:
                    self.errors.append(SurfaceError.of(path, entries[path].kind, error, "remove"))
                    stays = True
            if stays and path in targets:
                self._held.add(target_of(path, targets[path]))

    def _write(self, entries: Entries) -> bool:
        if entries == self._written:
            return True
        try:
            with self._lock:
                journal.save(self._shelf.beneath, self._owner, self._boot_id, entries)
        except OSError as error:
            path = journal.journal_path(self._owner)
            self.errors.append(SurfaceError.of(path, "journal", error, "write"))
            return False
        self._written = dict(entries)
        return True
