"""The plan of a wave and the slow resync: what is as it should be is left alone, what is not comes back."""

from __future__ import annotations

import asyncio

from tests.agent.acting import (
    Act,
    Keeper,
    Log,
    Node,
    Planned,
    Publisher,
    Reader,
    Schedule,
    Signaller,
    Stager,
    state,
    story,
)
from tests.agent.virtual import VirtualLoop, run


def test_a_state_whose_trees_do_not_differ_is_not_staged_and_flips_no_probe() -> None:
    log: Log = []
    run(Node([Planned("a", log)], Schedule([(0, state(1)), (3, state(3))]), log).live(5))
    assert story(log, "plan", "stage", "staged") == [
        "0 a stage begin 1/0",
        "0 a stage end 1/0",
        "0 agent staged green",
        "3 a plan begin 3/0",
        "3 a plan end 3/0",
        "5 agent staged red",
    ]


def test_what_is_read_and_published_follows_even_without_a_stage() -> None:
    class All(Planned, Reader, Publisher):
        pass

    log: Log = []
    run(Node([All("a", log)], Schedule([(0, state(1)), (3, state(3))]), log).live(5))
    assert [line for line in story(log, "stage", "patch", "narrow", "apply") if line.startswith("3")] == [
        "3 a patch begin 3/0",
        "3 a patch end 3/0",
        "3 a apply begin 3/0",
        "3 a apply end 3/0",
    ]


def test_one_that_has_something_to_do_or_cannot_say_makes_everybody_stage() -> None:
    log: Log = []
    arrivals = [(0.0, state(1)), (3.0, state(2))]
    run(Node([Planned("a", log), Planned("b", log, kinds=1)], Schedule(arrivals), log).live(5))
    run(Node([Planned("c", log, kinds=1), Stager("d", log)], Schedule(arrivals), log).live(5))
    assert [line for line in story(log, "stage") if line.startswith("3") and "begin" in line] == [
        "3 a stage begin 2/0",
        "3 b stage begin 2/0",
        "3 c stage begin 2/0",
        "3 d stage begin 2/0",
    ]


def test_after_a_failed_wave_nobody_is_asked() -> None:
    log: Log = []
    failing = Planned("a", log, {"stage": [Act(0, "x"), Act()]})
    run(Node([failing], Schedule([(0, state(1))]), log, first_retry=1).live(5))
    assert story(log, "plan", "stage")[2:] == ["1 a stage begin 1/0", "1 a stage end 1/0"]


def test_a_plan_that_fails_or_hangs_makes_a_wave() -> None:
    log: Log = []
    failing = Planned("a", log, {"plan": [Act(0, "x"), Act(1000), Act()]})
    arrivals = [(0.0, state(1)), (3.0, state(3)), (5.0, state(5))]
    run(Node([failing], Schedule(arrivals), log, deadline=10).live(50))
    assert [line for line in story(log, "stage") if "begin" in line] == [
        "0 a stage begin 1/0",
        "3 a stage begin 3/0",
        "15 a stage begin 5/0",
    ]


def test_drift_is_repaired_at_the_next_resync() -> None:
    log: Log = []
    planned = Planned("a", log)
    stager = Stager("b", log)

    class Vandal(Signaller):
        async def discard(self) -> None:
            pass

    def drift(name: str, value: object) -> None:  # noqa: ARG001
        planned.there = None

    vandal = Vandal("v", log, signals=(70,), report=drift)
    run(Node([planned, stager, vandal], Schedule([(0, state(1))]), log, resync_interval=60).live(200))
    assert story(log, "plan", "staged") == [
        "0 agent staged green",
        "60 a plan begin 1/0",
        "60 a plan end 1/0",
        "120 a plan begin 1/0",
        "120 a plan end 1/0",
        "120 agent staged red",
        "120 agent staged green",
        "180 a plan begin 1/0",
        "180 a plan end 1/0",
        "200 agent staged red",
    ]


def test_a_resync_applies_again_and_readiness_does_not_flicker() -> None:
    log: Log = []
    node = Node(
        [Planned("a", log), Publisher("b", log, {"apply": [Act(0), Act(3)]})],
        Schedule([(0, state(1))]),
        log,
        resync_interval=60,
    )

    async def watch() -> bool:
        living = asyncio.create_task(node.live(70))
        await asyncio.sleep(61)
        ready = node.agent.readiness().check().ok
        await living
        return ready

    assert run(watch())
    assert story(log, "apply")[2:] == ["60 b apply begin 1/0", "63 b apply end 1/0"]


def test_patches_do_not_put_the_resync_off() -> None:
    log: Log = []
    arrivals = [(0.0, state(1)), *((float(time), state(1, time)) for time in range(10, 100, 10))]
    run(Node([Planned("a", log), Reader("b", log)], Schedule(arrivals), log, resync_interval=60).live(110))
    assert [line for line in story(log, "plan") if "begin" in line] == ["60 a plan begin 1/60"]


def test_a_failing_apply_does_not_put_the_resync_off() -> None:
    log: Log = []
    simulators = [Planned("a", log), Publisher("b", log, {"apply": [Act(0, "refused")]})]
    run(Node(simulators, Schedule([(0, state(1))]), log, resync_interval=60, slowest_retry=600).live(200))
    assert [line for line in story(log, "plan") if "begin" in line] == [
        "60 a plan begin 1/0",
        "120 a plan begin 1/0",
        "180 a plan begin 1/0",
    ]


def test_an_idle_agent_wakes_only_to_look() -> None:
    log: Log = []
    simulators = [Planned("a", log), Keeper("b", log), Publisher("c", log), Reader("d", log), Signaller("e", log)]
    node = Node(simulators, Schedule([(0, state(1))]), log, resync_interval=60)

    async def live() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await node.live(600)
        return [sleep for sleep in loop.sleeps if sleep]

    assert run(live()) == [60] * 10


def test_a_patch_comes_before_a_mere_look() -> None:
    log: Log = []
    simulators = [Planned("a", log, {"stage": [Act(), Act(0, "x")]}), Reader("b", log)]
    arrivals = [(0.0, state(1)), (60.0, state(1, 1))]
    run(Node(simulators, Schedule(arrivals), log, resync_interval=60).live(70))
    assert story(log, "plan", "patch") == [
        "60 b patch begin 1/1",
        "60 b patch end 1/1",
        "60 a plan begin 1/1",
        "60 a plan end 1/1",
    ]
