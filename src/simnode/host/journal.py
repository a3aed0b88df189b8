"""The journal: what one owner has made, written ahead in one batch so that any death leaves it repairable.

Before a converge makes or replaces anything, all its intents are written at once; after it, what became of them.
Between the two an entry says what is being made and what of ours was there before, so whoever comes next can tell from
what it finds which of the two it is. Identities (device, inode …) hold for one boot; after that contents decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from simnode.host import records
from simnode.host.errors import TreeError
from simnode.host.paths import Beneath, check_path
from simnode.host.records import Parsed
from simnode.host.surfaces import CharacterDevice, File, Link, LiveFile, StandIn, Surface

Identity = tuple[int, ...]

_VERSION = 1
_IDENTITY_LENGTH = {File.kind: 4, LiveFile.kind: 3, Link.kind: 2, CharacterDevice.kind: 2, StandIn.kind: 1}


class Entry(Struct, frozen=True):
    """What the owner made, or is about to make (`intent`), at one path.

    `identity` recognises the very object: (device, inode, ctime in ns, size) of a file, (device, inode, birth in ns)
    of a live file, (device, inode) of a link or device, (mount id,) of a stand-in; None for an intent and after a
    reboot. `was`: what of ours an intent replaces.
    """

    kind: str
    mode: int
    fingerprint: str
    identity: Identity | None = None
    was: Entry | None = None
    intent: bool = False

    @classmethod
    def done(cls, surface: Surface, identity: Identity) -> Entry:
        """The surface stands, as this object."""
        return cls(surface.kind, surface.mode, surface.fingerprint, identity)

    @classmethod
    def ahead(cls, surface: Surface, was: Entry | None) -> Entry:
        """The surface is about to be made."""
        return cls(surface.kind, surface.mode, surface.fingerprint, None, was, intent=True)

    def rebooted(self) -> Entry:
        """The same without identities."""
        return replace(self, identity=None, was=self.was and self.was.rebooted())


Entries = Mapping[str, Entry]

_NONE: Entries = {}


def journal_path(owner: str) -> str:
    """Where the owner's journal lies, relative to the root."""
    return f"{records.JOURNALS}/{owner}.json"


def load(beneath: Beneath, owner: str, boot_id: str, parsed: Parsed[Entries]) -> Entries:
    """The owner's entries, without identities if another boot wrote them. Raises DamagedError."""
    entries = parsed.read(beneath, journal_path(owner), lambda record: _parsed(record, boot_id))
    return _NONE if entries is None else entries


def _parsed(record: bytes, boot_id: str) -> Entries:
    match records.decoded(record):
        case {"version": version, "boot_id": str(boot), "entries": dict(entries)} if version == _VERSION:
            known = {_path(path): _entry(value) for path, value in entries.items()}
            return known if boot == boot_id else {path: entry.rebooted() for path, entry in known.items()}
    raise records.DamagedError(record[:40])


def save(beneath: Beneath, owner: str, boot_id: str, entries: Entries) -> None:
    """Replace the owner's journal; without entries there is none."""
    if not entries:
        records.remove(beneath, journal_path(owner))
        return
    document = {
        "version": _VERSION,
        "boot_id": boot_id,
        "entries": {path: _encoded(entry) for path, entry in entries.items()},
    }
    records.write(beneath, journal_path(owner), document)


def _encoded(entry: Entry) -> list[object]:
    was = entry.was and _encoded(entry.was)
    return [entry.kind, entry.mode, entry.fingerprint, entry.identity, was, entry.intent]


def _entry(value: object) -> Entry:
    match value:
        case [str(kind), int(mode), str(fingerprint), identity, was, bool(intent)] if kind in _IDENTITY_LENGTH:
            if kind != LiveFile.kind or fingerprint.isdecimal():
                before = None if was is None else _entry(was)
                return Entry(kind, mode, fingerprint, _identity(kind, identity), before, intent)
    raise records.DamagedError(value)


def _identity(kind: str, value: object) -> Identity | None:
    match value:
        case None:
            return None
        case list(numbers) if len(numbers) == _IDENTITY_LENGTH[kind] and all(type(number) is int for number in numbers):
            return tuple(numbers)
    raise records.DamagedError(value)


def _path(path: str) -> str:
    try:
        check_path(path)
    except TreeError:
        raise records.DamagedError(path) from None
    return path
