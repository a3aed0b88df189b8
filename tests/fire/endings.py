"""How a life ends: told to once, told to again and again in foul weather, with its source, or killed at any call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine

from simnode.agent import ShutdownError
from tests.fire.life import SHUTDOWN_S, Life
from tests.fire.steps import any_step, edit
from tests.fire.weather import KILLED

Ending = Callable[[Life], Coroutine[object, object, None]]
_DONE_S = SHUTDOWN_S + 0.5


async def told(life: Life) -> None:
    """SIGTERM, in fair weather."""
    life.note("SIGTERM")
    life.running.cancel()
    assert await _over(life), "something stayed behind in fair weather"


async def closed(life: Life) -> None:
    """The source ends."""
    life.note("the source ends")
    await life.source.close()
    assert await _over(life), "something stayed behind in fair weather"


async def storm(life: Life) -> None:
    """SIGTERM after SIGTERM, whatever is going on."""
    life.note("a storm")
    life.disturbed = True
    going_on = asyncio.create_task(any_step(life))
    await asyncio.sleep(life.chance.choice((0.0, 0.01, 0.2, 3.0)))
    life.note("SIGTERMs")
    began = asyncio.get_running_loop().time()
    for _ in range(life.chance.randint(1, 20)):
        life.running.cancel()
        await asyncio.sleep(life.chance.choice((0.0, 0.0, 0.01, 1.0)))
    clean = await _over(life, began)
    going_on.cancel()
    await asyncio.gather(going_on, return_exceptions=True)
    life.note("ended clean" if clean else "ended with things left behind")


async def struck(life: Life) -> None:
    """Death at a call: of an edit, or of the way down."""
    call, after = life.chance.randint(1, 400), life.chance.random() < 0.5
    life.note(f"death {'after' if after else 'before'} call {call}")
    life.weather.die_at(call, after=after)
    await edit(life)
    await asyncio.sleep(life.chance.choice((0.0, 0.5, 5.0)))
    life.running.cancel()
    await asyncio.wait({life.running})
    os._exit(KILLED)


async def killed(life: Life) -> None:
    """Death at a moment."""
    life.note("death at a moment")
    await asyncio.wait(
        {asyncio.create_task(any_step(life))}, timeout=life.chance.choice((0.0, 0.1, 0.11, 0.3, 2.0, 40.0))
    )
    os._exit(KILLED)


ENDINGS: tuple[tuple[Ending, int], ...] = ((told, 3), (closed, 1), (storm, 3), (struck, 5), (killed, 2))


async def any_ending(life: Life) -> None:
    """One by chance."""
    (ending,) = life.chance.choices([ending for ending, _ in ENDINGS], [weight for _, weight in ENDINGS])
    await ending(life)


async def _over(life: Life, began: float | None = None) -> bool:
    """Wait for the end, which must come in time; true if the agent says that it left nothing behind."""
    now = asyncio.get_running_loop().time
    began = now() if began is None else began
    await asyncio.wait({life.running}, timeout=2 * _DONE_S)
    assert life.running.done(), "the agent does not end"
    assert now() - began <= _DONE_S, f"the agent took {now() - began} s to end"
    assert not life.agent.staged().is_set()
    life.clean = False
    try:
        await life.running
    except asyncio.CancelledError:
        life.clean = True
    except ShutdownError as error:
        names = {simulator.name for simulator in life.node.simulators} | {"source", "agent"}
        assert error.failures
        life.field.foul = True
        life.note(f"left behind: {error}")
        assert {failure.simulator for failure in error.failures} <= names
    else:
        life.clean = True
    return life.clean
