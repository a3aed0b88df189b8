"""Waiting for a State to be in force: what the control socket does before it answers."""

from __future__ import annotations

import asyncio

from simnode.agent import Failure, Failures
from tests.agent.acting import Act, Log, Node, Publisher, Reader, Schedule, Stager, state
from tests.agent.virtual import run


def settled(node: Node, generation: int, asked_at: float) -> tuple[float, Failures]:
    """When and with what the wait for `generation` ends."""

    async def live() -> tuple[float, Failures]:
        living = asyncio.create_task(node.live(50))
        await asyncio.sleep(asked_at)
        failures = await node.agent.settled(generation)
        time = asyncio.get_running_loop().time()
        await living
        return time, failures

    return run(live())


def test_a_patch_is_waited_for_and_no_apply() -> None:
    log: Log = []

    class Both(Reader, Publisher):
        pass

    simulators = [Both("a", log, {"patch": [Act(2)], "apply": [Act(20)]})]
    arrivals = [(0.0, state(1, generation=1)), (33.0, state(1, 1, generation=2))]
    assert settled(Node(simulators, Schedule(arrivals), log), 2, 31) == (35, ())


def test_a_wave_is_waited_for() -> None:
    log: Log = []
    arrivals = [(0.0, state(1, generation=1)), (3.0, state(2, generation=2))]
    node = Node([Stager("a", log, {"stage": [Act(4)]})], Schedule(arrivals), log)
    assert settled(node, 2, 1) == (8, ())


def test_what_is_in_force_already_is_not_waited_for() -> None:
    log: Log = []
    assert settled(Node([Stager("a", log)], Schedule([(0, state(1, generation=5))]), log), 3, 1) == (1, ())


def test_a_later_state_will_do() -> None:
    log: Log = []
    node = Node([Stager("a", log)], Schedule([(3, state(1, generation=9))]), log)
    assert settled(node, 2, 1) == (3, ())


def test_an_equal_state_settles_its_generation() -> None:
    log: Log = []
    arrivals = [(0.0, state(1, generation=1)), (3.0, state(1, generation=2))]
    assert settled(Node([Stager("a", log)], Schedule(arrivals), log), 2, 1) == (3, ())


def test_the_first_failure_is_the_answer() -> None:
    log: Log = []
    arrivals = [(0.0, state(1, generation=1)), (3.0, state(1, 1, generation=2))]
    node = Node([Reader("a", log, {"patch": [Act(1, "no image"), Act()]})], Schedule(arrivals), log)
    assert settled(node, 2, 1) == (4, (Failure("a", "patch", "", "no image"),))


def test_the_failure_of_an_older_state_is_not() -> None:
    log: Log = []
    arrivals = [(0.0, state(1, generation=1)), (3.0, state(2, generation=2)), (4.0, state(3, generation=3))]
    node = Node([Stager("a", log, {"stage": [Act(), Act(5, "x"), Act()]})], Schedule(arrivals), log)
    assert settled(node, 3, 1) == (8, ())


def test_the_end_of_the_agent_ends_the_wait() -> None:
    log: Log = []
    time, failures = settled(Node([Stager("a", log)], Schedule([(0, state(1))]), log), 2, 1)
    assert (time, list(map(str, failures))) == (50, ["agent: stage: the agent is being ended"])
