"""The processes that a command leaves behind, where no pid namespace ends them: the launcher adopts and kills them.

Best effort: one that forks faster than a pass over /proc is left, and so is all of them if the launcher is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_PASSES, _PAUSE = 1000, 0.01


def adopt() -> None:
    """From now on whoever loses his parent below this process becomes its child."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants(ended: Callable[[int], bool], spared: int) -> None:
    """Kill and reap all but `spared` (0: nobody) and those below it; `ended` hears of each that is reaped."""
    for _ in range(_PASSES):
        with suppress(ChildProcessError):
            while reaped := os.waitpid(-1, os.WNOHANG)[0]:
                ended(reaped)
        left = list(_below(os.getpid(), spared))
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def _below(top: int, spared: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with suppress(OSError):
                children.setdefault(_parent(name), []).append(int(name))
    open_ends = [top]
    while open_ends:
        for child in children.get(open_ends.pop(), ()):
            if child != spared:
                open_ends.append(child)
                yield child


def _parent(pid: str) -> int:
    file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        line = os.read(file, 4096)
    finally:
        os.close(file)
    return int(line[line.rindex(b")") + 2 :].split()[1])
