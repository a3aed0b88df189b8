"""What befalls the agent's work on files: threads that take their time, calls that fail, death in the middle of it.

The agent's threads are timers here: their work is done at a moment of virtual time that the weather chooses, one after
the other, so a run is the same whenever it has the same seed. Within such work every changing system call of the
engine passes `_call`, and everything else that opens or changes a file is noticed by an audit hook.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simnode import threads
from tests.host.scene import around_calls

KILLED = 77
SICK = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO)
_TAKES_SPACE = frozenset(("create", "write", "allocate", "make_directory", "make_link", "make_device", "rename_new"))
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = frozenset(("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.truncate"))


@dataclass
class Sickness:
    """A disk that fails with `code` from its `after`-th call on, `lasting` so many calls (of those it fails at all)."""

    code: int
    after: int
    lasting: float

    def strikes(self, name: str) -> bool:
        """True if this call fails."""
        if self.code == errno.ENOSPC and name not in _TAKES_SPACE:
            return False
        self.after -= 1
        if self.after >= 0 or self.lasting <= 0:
            return False
        self.lasting -= 1
        return True


@dataclass
class Weather:
    """The weather of one process. `at_calls` is called after calls of the engine, `at_rest` after a thread's work.

    `calm_at`: when the last thread that has begun will be done, in the event loop's time.
    """

    chance: random.Random
    at_calls: Callable[[], None] = lambda: None
    at_rest: Callable[[], None] = lambda: None
    slowness: tuple[float, ...] = (0.0,)
    sickness: Sickness | None = None
    death: tuple[float, bool] = (math.inf, False)
    struck: list[tuple[str, int]] = field(default_factory=list)
    calls: int = 0
    told: int = 0
    calm_at: float = 0.0
    _working: bool = False
    _calling: bool = False

    @property
    def fair(self) -> bool:
        """True if neither is any thread slow nor the disk sick."""
        return self.slowness == (0.0,) and self.sickness is None

    def clear(self) -> None:
        """Fine weather from now on."""
        self.slowness, self.sickness = (0.0,), None

    def rule(self, body: Callable[[], None]) -> None:
        """Do `body` under this weather. Once in a process: the audit hook stays."""
        threads._start = self._start
        sys.addaudithook(self._heard)
        with around_calls(self._call):
            body()

    def die_at(self, call: int, *, after: bool) -> None:
        """End the process before or after so many further calls."""
        self.death = self.calls + call, after

    def _start(self, work: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        done_at = loop.time() + self.chance.choice(self.slowness)
        self.calm_at = max(self.calm_at, done_at)
        loop.call_at(done_at, self._work, work)

    def _work(self, work: Callable[[], None]) -> None:
        self._working = True
        try:
            work()
        finally:
            self._working = False
        self.at_rest()

    def _call(self, name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if not self._working or self._calling:
            return call(*arguments)
        self._calling = True
        try:
            return self._counted(name, call, arguments)
        finally:
            self._calling = False

    def _counted(self, name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.calls += 1
        dies, after = self.death
        if self.calls >= dies:
            if after:
                call(*arguments)
            elif name == "write":
                call(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os._exit(KILLED)
        if self.sickness is not None and self.sickness.strikes(name):
            self._fail(name)
        result = call(*arguments)
        self.at_calls()
        return result

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Whatever the agent does outside the engine, before it does it."""
        if not self._working or self._calling:
            return
        changes = event in _EVENTS or (event == "open" and bool((arguments[2] or 0) & _CHANGING))
        if not changes:
            return
        self.calls += 1
        if self.calls >= self.death[0]:
            os._exit(KILLED)
        if self.sickness is not None and self.sickness.strikes("create" if event in ("open", "os.mkdir") else event):
            self._fail(event, arguments[0])

    def _fail(self, name: str, path: object = None) -> None:
        assert self.sickness is not None
        self.struck.append((name, self.sickness.code))
        raise OSError(self.sickness.code, os.strerror(self.sickness.code), path)
