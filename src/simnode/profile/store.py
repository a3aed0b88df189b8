"""The file of overrides: the store of every runtime change, and one that a person may edit.

`{version: 1, node: {…}, all: {…}, devices: {"3": {…}}}`, missing or empty where there are none. Whoever writes holds
`<path>.lock` exclusively from reading to renaming, so that nobody's change is lost; readers need no lock, as a rename
shows them one whole document or the other. The agent never wipes it: `reset` does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from simnode.profile.document import Document, Node, load
from simnode.profile.faults import Fault, ProfileError
from simnode.profile.overrides import EMPTY, Overrides, load_overrides
from simnode.profile.reading import read
from simnode.profile.writing import create, has_left, replace_file, sweep, written

_VERSION = Node(1, "", text="1")
_POLL = 0.002


class OverrideStore:
    """The file at `path`. Methods block, on the disk and (`update`) for up to `patience` seconds on the lock.

    What was read or written last is kept by its bytes, so that equal bytes give the very same values again.
    """

    def __init__(self, path: Path, patience: float = 5.0) -> None:
        self.path = path
        self._patience = patience
        self._known: tuple[bytes | None, Overrides] = (None, Overrides())

    @property
    def latest(self) -> bytes | None:
        """The bytes that were read or written last."""
        return self._known[0]

    def raw(self) -> bytes | None:
        """The bytes of the file; None if there is none. Raises ProfileError if they cannot be read."""
        return read(str(self.path)) if os.path.lexists(self.path) else None

    def load(self, unknown: list[Fault] | None = None) -> Overrides:
        """The overrides in the file. Raises ProfileError; unknown keys go to `unknown` if that is there."""
        return self.parsed(self.raw(), unknown)

    def parsed(self, raw: bytes | None, unknown: list[Fault] | None = None) -> Overrides:
        """The overrides in `raw`, which was the file's content."""
        if raw != self._known[0]:
            self._known = (raw, load_overrides(_document(raw, str(self.path)), unknown))
        return self._known[1]

    def update(self, change: Callable[[Overrides], Overrides]) -> Overrides:
        """Replace the overrides by what `change` makes of them, and return that; whatever it raises changes nothing.

        Raises ProfileError if the file is wrong as it is, OSError if it cannot be written.
        """
        with self._locked():
            old = self.load([])
            new = change(old)
            return old if new is old else self._replace(new)

    def clear(self) -> Overrides:
        """Replace the file by one without any overrides, however wrong it is; returns them. Raises as `update`."""
        with self._locked():
            return self._replace(Overrides())

    def sweep(self) -> None:
        """Remove what a killed writer has left; not now if that cannot be done."""
        if has_left(self.path):
            with contextlib.suppress(ProfileError, OSError), self._locked():
                sweep(self.path)

    def _replace(self, new: Overrides) -> Overrides:
        raw = written(_tree(new))
        replace_file(self.path, raw, 0o644)
        self._known = (raw, new)
        return new

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = create(Path(f"{self.path}.lock"), os.O_RDWR, 0o600)
        try:
            until = time.monotonic() + self._patience
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        message = f"is locked by another writer for {self._patience:g} s now"
                        raise ProfileError((Fault(str(self.path), "", None, message),)) from None
                time.sleep(_POLL)
            yield
        finally:
            os.close(descriptor)


def _document(raw: bytes | None, file: str) -> Document:
    if not (raw or b"").strip():
        return Document(file, EMPTY._replace(value=None))
    return load(raw or b"", file)


def _tree(overrides: Overrides) -> Node:
    entries = {"version": _VERSION}
    for name, node in (("node", overrides.node), ("all", overrides.all)):
        if node.value:
            entries[name] = node
    if overrides.devices:
        entries["devices"] = EMPTY._replace(value={str(at): node for at, node in overrides.devices.items()})
    return EMPTY._replace(value=entries)
