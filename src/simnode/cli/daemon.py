"""The process that keeps a host, or clears it: it depends on nothing its starter left, logs, and hears the end.

Whoever reads its log may go, a terminal may be closed, signals may keep coming: none of that leaves a node half done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator

from simnode.agent.logs import LEVELS, Lines, Outlet
from simnode.sandbox.command import open_standard_descriptors

_FLUSH = 1.0
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOGS = ("simnode", "asyncio")


def stand_alone() -> None:
    """Depend on no descriptor, umask or reader of a pipe."""
    open_standard_descriptors()
    os.umask(0o022)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def hold_back_the_end() -> None:
    """Keep the signals that ask for the end until `hearing_the_end`.

    Process 1 of a container never hears of one that comes before its handler otherwise.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)


@contextlib.contextmanager
def hearing_the_end(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` in the running loop at each signal that asks for it; afterwards such signals are ignored for good.

    Not by handlers of asyncio's: those go with the loop, which is too early. A hangup that the caller ignores (nohup)
    stays ignored.
    """
    loop = asyncio.get_running_loop()
    for number in _ENDS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    try:
        yield
    finally:
        for number in _ENDS:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def logging_to_stderr(level: str, form: str) -> Iterator[logging.Logger]:
    """The agent's log, and asyncio's; what is still unwritten when this ends gets a second."""
    outlet = Outlet()
    outlet.setFormatter(Lines(form))
    log = logging.getLogger("simnode")
    log.setLevel(LEVELS[level])
    for name in _LOGS:
        logging.getLogger(name).propagate = False
        logging.getLogger(name).addHandler(outlet)
    try:
        yield log
    finally:
        for name in _LOGS:
            logging.getLogger(name).removeHandler(outlet)
        outlet.finish(_FLUSH)
