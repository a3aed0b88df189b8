"""What the tests of the engine share: pictures of a directory, and a hand on every call that changes something."""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simnode.host import Host, syscalls

BOOT = "3e0f1c1e-6a34-4d0c-8a53-000000000001"
LATER_BOOT = "3e0f1c1e-6a34-4d0c-8a53-000000000002"

CALLS = tuple(
    name
    for name, value in vars(syscalls).items()
    if inspect.isfunction(value) and value.__module__ == syscalls.__name__ and not name.startswith("_")
)
"""Every call by which the engine changes anything."""

Around = Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]
Picture = dict[str, tuple[object, ...]]


def host(root: Path, boot_id: str = BOOT) -> Host:
    """A new engine over `root`, as a new process would make it."""
    return Host(root, boot_id=boot_id)


def picture(root: Path, *, records: bool = True) -> Picture:
    """Everything below `root` with inode, mode and content, so that two are equal only if nothing was touched.

    Without `records`, the engine's `state/` is left out.
    """
    seen: Picture = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(directory, name)
            relative = str(path.relative_to(root))
            if records or relative.split("/", maxsplit=1)[0] != "state":
                seen[relative] = portrait(path)
    return seen


def portrait(path: Path) -> tuple[object, ...]:
    """What makes a thing the very same thing, unchanged."""
    found = path.lstat()
    held: object = None
    if stat.S_ISREG(found.st_mode):
        held = path.read_bytes()
    elif stat.S_ISLNK(found.st_mode):
        held = str(path.readlink())
    elif stat.S_ISCHR(found.st_mode):
        held = found.st_rdev
    return found.st_ino, oct(found.st_mode), held


@contextmanager
def around_calls(around: Around) -> Iterator[None]:
    """Every call goes through `around(name, call, arguments)` instead."""
    originals = {name: getattr(syscalls, name) for name in CALLS}

    def wrapped(name: str) -> Callable[..., Any]:
        return lambda *arguments: around(name, originals[name], arguments)

    for name in CALLS:
        setattr(syscalls, name, wrapped(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(syscalls, name, original)


@contextmanager
def recorded() -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
    """The calls that succeeded, in their order."""
    done: list[tuple[str, tuple[Any, ...]]] = []

    def around(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        result = call(*arguments)
        done.append((name, arguments))
        return result

    with around_calls(around):
        yield done


@contextmanager
def failing(code: int, *, when: Callable[[str, tuple[Any, ...]], bool]) -> Iterator[None]:
    """The calls for which `when(name, arguments)` fail with this errno."""

    def around(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if when(name, arguments):
            raise OSError(code, os.strerror(code))
        return call(*arguments)

    with around_calls(around):
        yield


class Death:
    """Ends the run at its n-th call, before that acts: which is after the one before it acted, for nothing else acts.

    Or, `torn`, at its n-th write, which then has got half way. `die` must not return; whatever is called after that
    dies as well, so nothing more happens.
    """

    def __init__(self, at: int, *, torn: bool, die: Callable[[], None]) -> None:
        self.calls = 0
        self._at = at
        self._torn = torn
        self._die = die

    def __call__(self, name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.calls += name == "write" or not self._torn
        if self.calls < self._at:
            return call(*arguments)
        if self.calls == self._at and self._torn:
            descriptor, data = arguments
            call(descriptor, data[: len(data) // 2])
        return self._die()
