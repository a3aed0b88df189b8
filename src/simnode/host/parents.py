"""The ledger of directories: who needs which, and which of them the engine made.

Directories belong to the host, not to a simulator: several owners put things into one. Whoever needs a directory is
written down before it is made, so no other owner takes it away meanwhile; it goes at the end of the converge after
which nobody needs it, if the engine made it, it is still that directory, and it is empty. Explicit directories
(`surfaces.Directory`) are needed for their own sake and otherwise the same. All of this happens under the host's lock.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from msgspec import Struct, field

from simnode.host import records, syscalls
from simnode.host.errors import SurfaceError, TreeError
from simnode.host.ground import described
from simnode.host.paths import STATE, Beneath, BlockedError, check_path, parent_of
from simnode.host.records import Parsed, Shelf
from simnode.host.surfaces import Directory
from simnode.host.takeover import gives_way
from simnode.host.tree import Tree

LEDGER = f"{STATE}/parents.json"
_VERSION = 1
_PARENT_MODE = 0o755
_STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)


class Ledger(Struct):
    """`made` maps a directory to (device, inode), or None while it is being made and after a reboot.

    `needs` maps an owner to the directories that it needs.
    """

    made: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    needs: dict[str, frozenset[str]] = field(default_factory=dict)

    def needed(self, *, except_by: str = "") -> frozenset[str]:
        """The directories that somebody needs."""
        return frozenset().union(*(paths for owner, paths in self.needs.items() if owner != except_by))

    def made_this(self, path: str, found: os.stat_result) -> bool:
        """True if `found`, which lies at `path`, is a directory that the engine made."""
        identity = self.made.get(path, ())
        return stat.S_ISDIR(found.st_mode) and identity in (None, (found.st_dev, found.st_ino))

    def need(self, owner: str, paths: Iterable[str]) -> None:
        """From now on the owner needs these and no others."""
        self.needs[owner] = frozenset(paths)
        if not self.needs[owner]:
            del self.needs[owner]


def ledger_path(name: str) -> str:
    """Where the ledger of an engine over another root lies."""
    return f"{STATE}/parents-{name}.json"


def load(shelf: Shelf, boot_id: str, parsed: Parsed[Ledger]) -> Ledger:
    """The ledger as it was last written, which nobody may alter. Raises DamagedError."""
    ledger = parsed.read(shelf.beneath, shelf.ledger, lambda record: _parsed(record, shelf.ledger, boot_id))
    return Ledger() if ledger is None else ledger


def _parsed(record: bytes, path: str, boot_id: str) -> Ledger:
    match records.decoded(record):
        case {"version": version, "boot_id": str(boot), "made": dict(made), "needs": dict(needs)} if (
            version == _VERSION
        ):
            identities = {_path(path): _identity(value) for path, value in made.items()}
            if boot != boot_id:
                identities = dict.fromkeys(identities)
            return Ledger(identities, {owner: _paths(paths) for owner, paths in needs.items()})
    raise records.DamagedError(path)


class Parents:
    """The ledger as one converge of one owner uses it; what fails is added to `errors`."""

    def __init__(
        self,
        beneath: Beneath,
        shelf: Shelf,
        boot_id: str,
        *,
        owner: str,
        tree: Tree,
        parsed: Parsed[Ledger],
        errors: list[SurfaceError],
    ) -> None:
        self._beneath = beneath
        self._shelf = shelf
        self._boot_id = boot_id
        self._owner = owner
        self._tree = tree
        self._needs = tree.directories
        self._parsed = parsed
        self._errors = errors

    def prepare(self, giving_way: Iterable[str]) -> set[str]:
        """Make every directory that the tree needs; the answer are those that cannot be had.

        Directories at and below `giving_way` are pruned first: something else is wanted there. What lies below a
        directory that cannot be had is not reported again.
        """
        ledger, before = self._open()
        for path in giving_way:
            self._prune(ledger, path)
        missing: dict[str, int] = {}
        stale: set[str] = set()
        lost: set[str] = set()
        for path, mode in self._needs.items():
            parent = parent_of(path)
            if parent in lost:
                lost.add(path)
                continue
            try:
                found = None if parent in missing else self._beneath.stat(path)
                if found is not None and gives_way(self._beneath, path, found, self._tree.get(path)):
                    stale.add(path)
            except OSError as error:
                lost.add(path)
                self._fail(path, error, "look at")
                continue
            if found is None or path in stale:
                missing[path] = _PARENT_MODE if mode is None else mode
                ledger.made[path] = None
            elif not stat.S_ISDIR(found.st_mode):
                lost.add(path)
                text = f"must be a directory, but is {described(found)} that simnode did not make; move it away"
                self._errors.append(SurfaceError(path, Directory.kind, errno.ENOTDIR, text))
            else:
                self._keep(ledger, path, mode, found)
        needs_more = not self._needs.keys() <= before.needs.get(self._owner, frozenset())
        if (needs_more or ledger.made != before.made) and not self._save(ledger, before):
            return lost.union(missing)
        for path, mode in missing.items():
            try:
                if path in stale:
                    syscalls.remove(*self._beneath.place(path))
                ledger.made[path] = self._make(path, mode)
            except FileExistsError:
                del ledger.made[path]
            except OSError as error:
                lost.add(path)
                if parent_of(path) not in lost:
                    self._fail(path, error, "make")
        if missing:
            self._save(ledger, None)
        return lost

    def settle(self) -> None:
        """Prune whatever nobody needs any more; an empty directory that cannot be removed is an error."""
        ledger, before = self._open()
        self._prune(ledger, "")
        self._save(ledger, before)

    def _keep(self, ledger: Ledger, path: str, mode: int | None, found: os.stat_result) -> None:
        ours = ledger.made_this(path, found)
        if ours and ledger.made[path] is None:
            ledger.made[path] = (found.st_dev, found.st_ino)
            mode = _PARENT_MODE if mode is None else mode
        if mode is None or stat.S_IMODE(found.st_mode) == mode:
            return
        if not ours:
            text = f"has mode {stat.S_IMODE(found.st_mode):04o}, not {mode:04o}, and was not made by simnode"
            self._errors.append(SurfaceError(path, Directory.kind, None, text))
            return
        try:
            syscalls.set_mode_at(*self._beneath.place(path), mode)
        except OSError as error:
            self._fail(path, error, "set the mode of")

    def _make(self, path: str, mode: int) -> tuple[int, int]:
        directory, name = self._beneath.place(path)
        syscalls.make_directory(directory, name)
        syscalls.set_mode_at(directory, name, mode)
        made = os.stat(name, dir_fd=directory, follow_symlinks=False)
        return made.st_dev, made.st_ino

    def _prune(self, ledger: Ledger, within: str) -> None:
        needed = ledger.needed()
        below = within and within + "/"
        for path in sorted(ledger.made, reverse=True):
            if path in needed or not (path == within or path.startswith(below)):
                continue
            try:
                found = self._beneath.stat(path)
                if found is not None and ledger.made_this(path, found):
                    self._beneath.forget(path)
                    syscalls.remove_directory(*self._beneath.place(path))
            except (BlockedError, FileNotFoundError):
                pass
            except OSError as error:
                if error.errno not in _STAYS:
                    self._fail(path, error, "remove")
                continue
            del ledger.made[path]

    def _open(self) -> tuple[Ledger, Ledger]:
        """The ledger with this owner's needs, and as it was."""
        self._beneath.forget()
        self._shelf.beneath.forget()
        try:
            before = load(self._shelf, self._boot_id, self._parsed)
        except records.DamagedError:
            records.set_aside(self._shelf.beneath, self._shelf.ledger)
            before = Ledger()
        ledger = Ledger(dict(before.made), dict(before.needs))
        ledger.need(self._owner, self._needs)
        return ledger, before

    def _save(self, ledger: Ledger, before: Ledger | None) -> bool:
        if ledger == before:
            return True
        try:
            if ledger.made or ledger.needs:
                needs = {owner: sorted(paths) for owner, paths in sorted(ledger.needs.items())}
                document = {"version": _VERSION, "boot_id": self._boot_id, "made": ledger.made, "needs": needs}
                records.write(self._shelf.beneath, self._shelf.ledger, document)
            else:
                records.remove(self._shelf.beneath, self._shelf.ledger)
        except OSError as error:
            self._errors.append(SurfaceError.of(self._shelf.ledger, "ledger", error, "write"))
            return False
        return True

    def _fail(self, path: str, error: OSError, doing: str) -> None:
        self._errors.append(SurfaceError.of(path, Directory.kind, error, doing))


def _identity(value: object) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int(device), int(inode)]:
            return device, inode
    raise records.DamagedError(value)


def _paths(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise records.DamagedError(value)
    return frozenset(map(_path, value))


def _path(path: str) -> str:
    try:
        check_path(path)
    except TreeError:
        raise records.DamagedError(path) from None
    return path
