"""The way down: withdraw everywhere, then take away everywhere, whatever has failed and however far staging has come.

It has a budget of its own. At most half of that goes into waiting for what still runs (the reconciler, the source's
stream, the daemons) and for the staging lock, without which it then goes on; at most half of the rest into revoking.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable

from simnode.agent.config import AgentConfig
from simnode.agent.failures import Failures, attribute
from simnode.agent.lock import StagingLock
from simnode.agent.record import Record
from simnode.agent.seats import Seat
from simnode.agent.supervise import Supervisor
from simnode.agent.waves import to_the_end
from simnode.contracts import Applier


async def shut_down(
    *,
    config: AgentConfig,
    seats: tuple[Seat, ...],
    lock: StagingLock,
    supervisor: Supervisor,
    tasks: Iterable[asyncio.Task[None]],
    record: Record,
) -> Failures:
    """Do it; all that failed. `tasks` have been cancelled and may still end, staged is red."""
    now = asyncio.get_running_loop().time
    until = now() + config.shutdown_timeout
    half = config.shutdown_timeout / 2
    _, ended = await asyncio.gather(asyncio.wait(tasks, timeout=half), supervisor.stop(half))
    await _acquire(config, lock, max(0.0, until - half - now()))
    began = now()
    budget = max(0.0, until - began) / 2
    revokes = ((seat, seat.simulator.revoke) for seat in seats if isinstance(seat.simulator, Applier))
    revoked, closed = await asyncio.gather(to_the_end("revoke", revokes, budget), _close(config, budget))
    record.did("revoke", now() - began, revoked)
    began = now()
    discards = ((seat, seat.simulator.discard) for seat in seats)
    discarded = await to_the_end("discard", discards, max(0.0, until - began))
    record.did("discard", now() - began, discarded)
    record.went_wrong(closed)
    failures = (*ended, *closed, *revoked, *discarded)
    for failure in failures:
        config.log.error("%s", failure, extra=failure.extra())
    return failures


async def regardless(work: Coroutine[object, object, Failures]) -> Failures:
    """The result of `work`, which runs to its end however often the caller is cancelled meanwhile."""
    task = asyncio.create_task(work, name="shutdown")
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()


async def _acquire(config: AgentConfig, lock: StagingLock, timeout: float) -> None:
    try:
        await lock.acquire(timeout)
    except Exception as error:
        for failure in attribute("agent", "lock", error):
            config.log.warning("%s; going on without it", failure, extra=failure.extra())


async def _close(config: AgentConfig, timeout: float) -> Failures:
    try:
        async with asyncio.timeout(timeout):
            await config.source.close()
    except Exception as error:
        return attribute("source", "close", error)
    return ()
