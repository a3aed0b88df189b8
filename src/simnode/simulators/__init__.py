"""One simulator for each simulated component. They know nothing of one another; all know how to wait for file work."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """What blocking `call` returns or raises, run in a thread of its own so that the event loop goes on.

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

    threading.Thread(target=work, daemon=True).start()
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
