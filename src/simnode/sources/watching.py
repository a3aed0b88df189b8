"""Noticing that the content behind a path may have changed, however many links lead there.

A ConfigMap's file is a link through a link (`..data`) into a directory with a date for a name; an update swaps the
middle one, and nothing ever happens to the file itself. So every directory that holds a link on the way is watched, the
one that holds the file, and where something is missing the one that it is missing from. Each is watched before it is
looked into: what changes after that is noticed. What inotify cannot see (another machine's write to a network file
system, a directory on the way that is replaced) and what it refuses (its limits) is left to the caller's slow look.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from asyncinotify import Inotify, Mask, Watch

_MOST_LINKS = 40
_MASK = (
    Mask.CLOSE_WRITE
    | Mask.CREATE
    | Mask.DELETE
    | Mask.MOVED_FROM
    | Mask.MOVED_TO
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
    | Mask.ONLYDIR
)
_ALWAYS = Mask.Q_OVERFLOW | Mask.UNMOUNT | Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF
_VANISHED = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
_ATTEMPTS = 5
_ENOUGH = 64  # events: more than an update of a ConfigMap brings, and little enough for the event loop


class Watching:
    """What leads to `paths`. `descriptor` is readable when something may have happened, -1 if that cannot be known."""

    def __init__(self, paths: Iterable[Path], log: logging.Logger) -> None:
        self._paths = tuple(path.absolute() for path in paths)
        self._log = log
        self._inotify: Inotify | None = None
        self._names: dict[Watch, set[str]] = {}
        self._blind = ""
        self._crowded = False

    @property
    def descriptor(self) -> int:
        """The inotify descriptor; call `changed` when it is readable."""
        return -1 if self._inotify is None else self._inotify.fd

    @property
    def blind(self) -> bool:
        """True if not everything is watched."""
        return bool(self._blind)

    def attach(self) -> None:
        """Watch all that leads to the paths now, and nothing else. Call before reading them. Blocks on the disk."""
        if self._crowded:
            self._renew()
        before, self._names = self._names, {}
        refused = ""
        try:
            if self._inotify is None:
                self._inotify = Inotify(sync_timeout=0)
            for path in self._paths:
                for _ in range(_ATTEMPTS):
                    if self._follow(self._inotify, path):
                        break
        except OSError as error:
            refused = error.strerror or str(error)
            self._names = {**before, **self._names}
        for watch in before.keys() - self._names.keys():
            with suppress(OSError):  # the kernel has dropped it already
                assert self._inotify is not None
                self._inotify.rm_watch(watch)
        if refused and not self._blind:
            self._log.warning("source: inotify: %s; looking at the files more often instead", refused)
        self._blind = refused

    def changed(self) -> bool:
        """True if anything that matters has happened since the last call, or more than can be told in no time.

        If so, call `attach` next.
        """
        if self._inotify is None:
            return False
        changed = False
        for count, event in enumerate(self._inotify):
            if count >= _ENOUGH:
                self._crowded = True
                return True
            watch = event.watch
            if watch is None:
                changed = changed or bool(event.mask & Mask.Q_OVERFLOW)
                continue
            names = self._names.get(watch)
            if names is None:
                continue
            name = str(event.name or "")
            if event.mask & _ALWAYS or name in names or name.startswith(".."):
                changed = True
        return changed

    def _renew(self) -> None:
        """Pass over all that has happened by now; not if inotify refuses."""
        with suppress(OSError):
            fresh = Inotify(sync_timeout=0)
            self.close()
            self._inotify, self._names = fresh, {}
            self._crowded = False

    def close(self) -> None:
        """Watch nothing any more."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _follow(self, inotify: Inotify, path: Path) -> bool:
        """Watch what leads to one path; False if it changed meanwhile. Raises OSError if inotify refuses."""
        directory, parts, links = Path(path.anchor), list(path.parts[1:]), 0
        while parts:
            name = parts.pop(0)
            here = directory / name
            if parts and here.is_dir() and not here.is_symlink():
                directory = here
                continue
            try:
                self._names.setdefault(inotify.add_watch(directory, _MASK), set()).add(name)
            except OSError as error:
                if error.errno in _VANISHED:
                    return False
                raise
            try:
                target = here.readlink()
            except OSError as error:
                if error.errno == errno.EINVAL and parts:
                    directory = here
                    continue
                return True
            links += 1
            if links > _MOST_LINKS:
                return True
            parts = [part for part in target.parts if part != target.anchor] + parts
            directory = Path(target.anchor) if target.is_absolute() else directory
            while parts and parts[0] == "..":
                directory, parts = Path(os.path.realpath(directory)).parent, parts[1:]
        return True
