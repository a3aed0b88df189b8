"""The engine's own records in `state/`: small JSON documents, each replaced by rename.

The directory appears with the first record and goes with the last, so a root that holds nothing of ours holds no trace.
Every function that changes something is called under the host's lock. Durable against the death of the process, not
against the loss of power: after a reboot the records say too little rather than too much, and contents decide.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from msgspec import Struct

from simnode.host import syscalls
from simnode.host.ctimes import settled, stamp
from simnode.host.paths import STATE, Beneath, BlockedError, parent_of, temporary

JOURNALS = f"{STATE}/journal"
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)

T = TypeVar("T")


class Shelf(Struct, frozen=True):
    """Where one engine's records lie: below which directory, and under what path there its ledger."""

    beneath: Beneath
    ledger: str


class DamagedError(Exception):
    """Raised by a reader of a record that is not what the engine writes; the record is then set aside."""


class Parsed(Generic[T]):
    """The record that was parsed last, and what it says: the very same value as long as the record is equal."""

    def __init__(self) -> None:
        self._latest: tuple[tuple[int, int, int] | None, bytes, T] | None = (
            None  # replaced as one: several threads may read at once
        )

    def read(self, beneath: Beneath, path: str, parse: Callable[[bytes], T]) -> T | None:
        """What the record at `path` (ending in .json) says, which nobody may alter; None if there is none.

        Raises DamagedError, and what `parse` raises.
        """
        latest = self._latest
        before = time.time_ns()
        try:
            found = beneath.stat(path)
            if found is None:
                return None
            seen = stamp(found)
            if latest is not None and latest[0] == seen:
                return latest[2]
            if not stat.S_ISREG(found.st_mode):
                raise DamagedError(path)
            with os.fdopen(beneath.open(path), "rb") as file:
                record = file.read()
        except FileNotFoundError:
            return None
        except BlockedError:
            raise DamagedError(path) from None
        value = parse(record) if latest is None or latest[1] != record else latest[2]
        self._latest = seen if settled(seen[2], before) else None, record, value
        return value


def decoded(record: bytes) -> object:
    """The document that a record holds. Raises DamagedError."""
    try:
        document: object = json.loads(record)
    except (ValueError, RecursionError):
        raise DamagedError(record[:40]) from None
    return document


def write(beneath: Beneath, path: str, document: object) -> None:
    """Put `document` at `path`, in one step."""
    data = json.dumps(document, separators=(",", ":")).encode()
    # Another owner may have taken the empty directories away since they were opened.
    beneath.forget(STATE)
    _make_directories(beneath, parent_of(path))
    directory, name = beneath.place(path)
    prepared = _prepared(name)
    with suppress(FileNotFoundError):
        syscalls.remove(directory, prepared)
    try:
        descriptor = syscalls.create(directory, prepared)
        try:
            syscalls.write(descriptor, data)
            syscalls.set_mode(descriptor, 0o644)
        finally:
            os.close(descriptor)
        syscalls.rename(directory, prepared, name)
    except OSError:
        with suppress(OSError):
            syscalls.remove(directory, prepared)
        raise


def remove(beneath: Beneath, path: str) -> None:
    """Remove the record, and the directories if they are empty then."""
    with suppress(FileNotFoundError):
        syscalls.remove(*beneath.place(path))
    tidy(beneath)


def tidy(beneath: Beneath) -> None:
    """Remove the directories if they are empty."""
    for directories in (JOURNALS, STATE):
        beneath.forget(directories)
        try:
            syscalls.remove_directory(*beneath.place(directories))
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            return


def sweep(beneath: Beneath, path: str) -> None:
    """Remove what a killed run had prepared of the record."""
    with suppress(FileNotFoundError):
        directory, name = beneath.place(path)
        syscalls.remove(directory, _prepared(name))


def set_aside(beneath: Beneath, path: str) -> None:
    """Rename a damaged record so that it is kept for whoever wants to look, and never read again."""
    directory, name = beneath.place(path)
    syscalls.rename(directory, name, name.removesuffix(".json") + ".damaged")


def _prepared(name: str) -> str:
    return temporary(name.removesuffix(".json"))


def _make_directories(beneath: Beneath, path: str) -> None:
    if not path:
        return
    _make_directories(beneath, parent_of(path))
    directory, name = beneath.place(path)
    with suppress(FileExistsError):
        syscalls.make_directory(directory, name)
        syscalls.set_mode_at(directory, name, 0o755)
