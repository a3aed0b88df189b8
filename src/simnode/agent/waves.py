"""How a wave runs over the seats: everybody at once, and then either to the end or to the first failure.

Staging, patching, revoking and discarding go to the end: one failure cancels no sibling and all are collected. Applying
is fail-fast: what is published should change as a whole or be tried again as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from simnode.agent.failures import Failure, Failures, attribute
from simnode.agent.seats import Seat

Call = tuple[Seat, Callable[[], Coroutine[object, object, None]]]


async def to_the_end(action: str, calls: Iterable[Call], timeout: float) -> Failures:
    """Make all `calls` concurrently, each within `timeout` seconds; what failed, sorted, when the last has ended."""
    made = tuple(calls)
    outcomes = await asyncio.gather(
        *(seat.call(action, work, timeout) for seat, work in made),
        return_exceptions=True,
    )
    failures: list[Failure] = []
    for (seat, _), outcome in zip(made, outcomes, strict=True):
        if outcome is not None:
            failures.extend(attribute(seat.name, action, outcome))
    return tuple(sorted(failures))


async def fail_fast(action: str, calls: Iterable[Call], timeout: float) -> Failures:
    """Make all `calls` concurrently; the first failure cancels the others, and what was cancelled did not fail.

    Returns once the cancelled have ended, too, as far as they do so within `timeout` seconds in all.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout
    tasks = {asyncio.create_task(seat.call(action, work, timeout)): seat for seat, work in calls}
    if not tasks:
        return ()
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
    await asyncio.wait(tasks)
    await asyncio.gather(*(seat.idle(max(0.0, until - loop.time())) for seat in tasks.values()))
    failures: list[Failure] = []
    for task, seat in tasks.items():
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failures.extend(attribute(seat.name, action, error))
    return tuple(sorted(failures))
