"""How the launcher starts what helps it: init, or the agent itself where there is no init.

Both read what the agent needs from one descriptor and report on another, always the same numbers (native/init/init.h).
Nothing else of the launcher's reaches them: every descriptor of ours is close-on-exec.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

REPORT, STATE, LIFELINE, HELD = 3, 4, 5, 6
_ABOVE = 10
_NEVER_IGNORED = {signal.SIGKILL, signal.SIGSTOP}


class Child(Struct, frozen=True):
    """`reports` reads its lines; it sees `lifeline` hang up when the launcher closes it, or is killed."""

    pid: int
    reports: int
    lifeline: int


class Lasting(Struct, frozen=True):
    """What a node that outlives its launcher is given: a file that it keeps locked, and one for its log."""

    held: int
    log: int


def keep_state(state: bytes) -> int:
    """A nameless file that holds `state`: an agent that is started again reads the same bytes again."""
    file = nameless("state")
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(state)
    return file


def nameless(name: str) -> int:
    """A file in memory; `name` only shows in /proc."""
    return move_up(os.memfd_create(name))


def spawn(command: Sequence[str], environ: Mapping[str, str], state: int, lasting: Lasting | None = None) -> Child:
    """Start `command` with default signals, nothing on standard input, and standard error for both its outputs."""
    report_read, report_write = map(move_up, os.pipe2(os.O_CLOEXEC))
    life_read, life_write = map(move_up, os.pipe2(os.O_CLOEXEC))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        *([(os.POSIX_SPAWN_DUP2, lasting.log, 2), (os.POSIX_SPAWN_DUP2, lasting.held, HELD)] if lasting else []),
        (os.POSIX_SPAWN_DUP2, 2, 1),
        (os.POSIX_SPAWN_DUP2, report_write, REPORT),
        (os.POSIX_SPAWN_DUP2, state, STATE),
        (os.POSIX_SPAWN_DUP2, life_read, LIFELINE),
    ]
    with _kept_to_ourselves():
        pid = os.posix_spawn(
            command[0],
            list(command),
            environ,
            file_actions=actions,
            setsigmask=(),
            setsigdef=signal.valid_signals() - _NEVER_IGNORED,
        )
    os.close(report_write)
    os.close(life_read)
    return Child(pid, report_read, life_write)


@contextmanager
def _kept_to_ourselves() -> Iterator[None]:
    """What the caller left open is for the command alone: somebody may wait for its end, and a node may stay."""
    opened = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    handed_down = [file for file in opened if file > 2 and _inheritable(file)]
    for file in handed_down:
        os.set_inheritable(file, False)
    try:
        yield
    finally:
        for file in handed_down:
            os.set_inheritable(file, True)


def _inheritable(file: int) -> bool:
    try:
        return os.get_inheritable(file)
    except OSError:  # the one that listed them
        return False


def move_up(file: int) -> int:
    """The same file under a number that is none of those the child expects; the old one is closed."""
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(file)
    return moved
