"""How the launcher starts what helps it: init, or the agent itself where there is no init.

Both read the compiled State from one descriptor and report on another, always the same numbers (native/init/init.h).
Nothing else of the launcher's reaches them: every descriptor of ours is close-on-exec.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REPORT, STATE, LIFELINE = 3, 4, 5
_ABOVE = 10
_NEVER_IGNORED = {signal.SIGKILL, signal.SIGSTOP}


@dataclass(frozen=True)
class Child:
    """`reports` reads its lines; it sees `lifeline` hang up when the launcher closes it, or is killed."""

    pid: int
    reports: int
    lifeline: int


def keep_state(state: bytes) -> int:
    """A nameless file that holds `state`: an agent that is started again reads the same bytes again."""
    file = os.memfd_create("state")
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(state)
    return _move_up(file)


def spawn(command: Sequence[str], environ: Mapping[str, str], state: int) -> Child:
    """Start `command` with default signals, nothing on standard input, and standard error for both its outputs."""
    report_read, report_write = map(_move_up, os.pipe2(os.O_CLOEXEC))
    life_read, life_write = map(_move_up, os.pipe2(os.O_CLOEXEC))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, 2, 1),
        (os.POSIX_SPAWN_DUP2, report_write, REPORT),
        (os.POSIX_SPAWN_DUP2, state, STATE),
        (os.POSIX_SPAWN_DUP2, life_read, LIFELINE),
    ]
    pid = os.posix_spawn(
        command[0],
        command,
        environ,
        file_actions=actions,
        setsigmask=(),
        setsigdef=signal.valid_signals() - _NEVER_IGNORED,
    )
    os.close(report_write)
    os.close(life_read)
    return Child(pid, report_read, life_write)


def _move_up(file: int) -> int:
    """The same file under a number that is none of those the child expects."""
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(file)
    return moved
