"""How the event loop waits for work on files, which may block for as long as a disk hangs.

Threads are daemons, so that none keeps the process from ending, and a few that are done wait for more: starting one
takes longer than most of what they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")

_MOST_IDLE = 4
_idle: list[queue.SimpleQueue[Callable[[], None]]] = []


async def in_thread(call: Callable[[], T]) -> T:
    """What blocking `call` returns or raises, run in a thread that does nothing else, while the event loop goes on.

    A thread cannot be stopped: a first cancellation is put off until the thread has returned, so whoever awaits this
    knows that nothing of it runs any more. A second one leaves the thread behind; it keeps no process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        if not done.done():
            outcome()

    def work() -> None:
        try:
            outcome: Callable[[], None] = partial(done.set_result, call())
        except BaseException as error:
            outcome = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has been closed, and this thread left behind
            loop.call_soon_threadsafe(settle, outcome)

    _start(work)
    try:
        await asyncio.wait({done})
    except asyncio.CancelledError:
        try:
            await asyncio.wait({done})
            done.exception()
        finally:
            done.cancel()
        raise
    return done.result()


def _start(work: Callable[[], None]) -> None:
    try:
        tasks = _idle.pop()
    except IndexError:
        tasks = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(tasks,), daemon=True).start()
    tasks.put(work)


def _serve(tasks: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(tasks)
