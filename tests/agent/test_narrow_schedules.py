"""What is published is there at every moment, whatever comes when and whatever fails."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.agent.acting import Act, Log, Node, Schedule, state
from tests.agent.virtual import run
from tests.agent.world import WANTED, Honest, World
from tests.examples import examples

_ACTS = st.lists(
    st.builds(Act, seconds=st.sampled_from([0.0, 1.0, 4.0]), error=st.sampled_from(["", "", "x"])), max_size=4
).map(lambda acts: [*acts, Act()])
_SCRIPTS = st.fixed_dictionaries(dict.fromkeys(("stage", "narrow", "apply"), _ACTS))
_ARRIVALS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(sorted(WANTED))), min_size=1, max_size=6).map(sorted)


@examples(100)
@given(_SCRIPTS, _ARRIVALS)
def test_nothing_published_names_what_is_gone(script: dict[str, list[Act]], arrivals: list[tuple[int, int]]) -> None:
    log: Log = []
    world = World(published={1, 2}, staged={1, 2, 3, 5})
    schedule = Schedule([(time, state(number)) for time, number in arrivals])
    node = Node([Honest("a", log, script, world=world)], schedule, log, quiet=True, slowest_retry=4)

    async def live() -> None:
        living = asyncio.create_task(node.live(100))
        await asyncio.sleep(99)
        assert world.staged == world.published == WANTED[arrivals[-1][1]]
        await living

    run(live())
    assert world == World()
