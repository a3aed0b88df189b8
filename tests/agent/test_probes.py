"""The three probes and the record: what they say when, and that they answer whatever hangs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from simnode.agent import ShutdownError
from simnode.contracts import Health, Probe
from simnode.state import State
from tests.agent.acting import EPOCH, Act, Keeper, Log, Node, Planned, Publisher, Reader, Schedule, Stager, state
from tests.agent.virtual import run


def asked(node: Node, *times: float) -> list[tuple[Health, Health, Health]]:
    """Liveness, readiness and staged at these times."""

    async def live() -> list[tuple[Health, Health, Health]]:
        living = asyncio.create_task(node.live(times[-1] + 1))
        answers = []
        for time in times:
            await asyncio.sleep(time - asyncio.get_running_loop().time())
            answers.append((node.agent.liveness().check(), node.agent.readiness().check(), node.agent.staged().check()))
        await living
        return answers

    return run(live())


def test_before_the_first_state_it_is_well_but_nothing_is_done() -> None:
    log: Log = []
    [(live, ready, staged)] = asked(Node([Stager("a", log)], Schedule([]), log), 1)
    assert live == Health(True, "", {"a": (True, "")})
    assert ready == Health(False, "the tree is not staged", {"a": (True, "")})
    assert staged == Health(False, "the tree is not staged", {"a": (False, "the tree is not staged")})


def test_staged_comes_before_ready() -> None:
    log: Log = []
    node = Node([Publisher("a", log, {"stage": [Act(2)], "apply": [Act(2)]})], Schedule([(0, state(1))]), log)
    answers = asked(node, 1, 3, 5)
    assert [(live.ok, ready.ok, staged.ok) for live, ready, staged in answers] == [
        (True, False, False),
        (True, False, True),
        (True, True, True),
    ]
    assert answers[1][1].reason == "not published"
    assert answers[2][1] == Health(True, "", {"a": (True, "")})


def test_a_failed_stage_is_not_well_and_says_who_sorted() -> None:
    log: Log = []
    simulators = [
        Stager("b", log, {"stage": [Act(0, "x"), Act()]}),
        Stager("a", log, {"stage": [Act(0, "y"), Act()]}),
        Stager("c", log),
    ]
    (live, ready, staged), after = asked(Node(simulators, Schedule([(0, state(1))]), log, first_retry=2), 1, 3)
    bad = {"b": (False, "stage: x"), "a": (False, "stage: y"), "c": (True, "")}
    assert live == Health(False, "stage failed: a, b", bad)
    assert staged == Health(False, "stage failed: a, b", bad)
    assert ready == Health(False, "stage failed: a, b", bad)
    assert [health.ok for health in after] == [True, True, True]


def test_a_failed_apply_shows_in_readiness_only() -> None:
    log: Log = []
    node = Node([Publisher("a", log, {"apply": [Act(0, "refused")]})], Schedule([(0, state(1))]), log)
    [(live, ready, staged)] = asked(node, 1)
    assert (live.ok, staged.ok) == (True, True)
    assert ready == Health(False, "not ready: a", {"a": (False, "apply: refused")})


def test_a_failed_patch_shows_in_readiness_until_it_is_made() -> None:
    log: Log = []
    reader = Reader("a", log, {"patch": [Act(0, "x"), Act()]})
    answers = asked(Node([reader], Schedule([(0, state(1)), (1, state(1, 1))]), log, first_retry=2), 2, 4)
    assert [ready.components["a"] for _, ready, _ in answers] == [(False, "patch: x"), (True, "")]


def test_what_failed_is_forgotten_when_it_is_no_longer_wanted() -> None:
    log: Log = []
    arrivals = [(0.0, state(1)), (1.0, state(2)), (3.0, state(1))]
    simulators = [Publisher("a", log, {"narrow": [Act(), Act(0, "busy")]})]
    answers = asked(Node(simulators, Schedule(arrivals), log, first_retry=100), 2, 4)
    assert [ready.components["a"] for _, ready, _ in answers] == [(False, "narrow: busy"), (True, "")]


def test_who_is_not_ready_is_named() -> None:
    log: Log = []
    simulators = [Stager("b", log, serves=False), Keeper("a", log, {"run": [Act(1)]}), Stager("c", log)]
    [(_, ready, _)] = asked(Node(simulators, Schedule([(0, state(1))]), log), 2)
    assert ready.reason == "not ready: a, b"
    assert ready.components == {"b": (False, "not ready"), "a": (False, "run: ended early"), "c": (True, "")}


def test_a_hung_stage_leaves_the_probes_answering_and_meets_its_deadline() -> None:
    log: Log = []
    hung = Stager("a", log, {"stage": [Act(1000, deaf=True)]})
    node = Node([hung], Schedule([(0, state(1))]), log, deadline=10, first_retry=5000, shutdown_timeout=2)

    async def live() -> list[Health]:
        living = asyncio.create_task(node.live(12))
        answers = []
        for _ in range(2):
            await asyncio.sleep(5.5)
            answers.append(node.agent.liveness().check())
        with pytest.raises(ShutdownError, match="a: discard: an earlier stage has not returned"):
            await living
        return answers

    assert run(live()) == [
        Health(True, "", {"a": (True, "")}),
        Health(False, "stage failed: a", {"a": (False, "stage: did not return within 10 s")}),
    ]


def test_no_probe_minds_what_the_source_says() -> None:
    log: Log = []
    [answers] = asked(Node([Stager("a", log)], Schedule([(0, state(1)), (1, "unreadable")]), log), 2)
    assert [health.ok for health in answers] == [True, True, True]


def test_no_probe_flickers_during_a_no_op_wave() -> None:
    log: Log = []
    node = Node([Planned("a", log, {"plan": [Act(4)]})], Schedule([(0, state(1)), (5, state(3))]), log)
    [answers] = asked(node, 7)
    assert [health.ok for health in answers] == [True, True, True]


def test_all_three_are_probes() -> None:
    agent = Node([], Schedule([]), []).agent
    assert all(isinstance(probe, Probe) for probe in (agent.liveness(), agent.readiness(), agent.staged()))


def test_the_record_counts_what_was_done_and_how_long_it_took() -> None:
    log: Log = []
    simulators = [Publisher("a", log, {"stage": [Act(2, "x"), Act(3)], "apply": [Act(1)]})]
    node = Node(simulators, Schedule([(0, state(1, generation=7))]), log)
    run(node.live(9))
    timings = {
        action: (timing.count, timing.failed, timing.total, timing.last)
        for action, timing in node.agent.record.timings.items()
        if action not in ("narrow", "lock")
    }
    assert timings == {
        "stage": (2, 1, 5, 3),
        "apply": (1, 0, 1, 1),
        "revoke": (1, 0, 0, 0),
        "discard": (1, 0, 0, 0),
    }
    assert node.agent.record.errors == {("a", "stage", ""): 1}
    assert (node.agent.record.accepted, node.agent.record.generation) == (7, 7)


STALE: dict[str, tuple[list[tuple[float, State | str | Exception]], float]] = {
    "no word yet": ([], 0),
    "a good one": ([(0, state(1))], 0),
    "a bad one": ([(0, state(1)), (1, "unreadable")], 60),
    "bad from the start": ([(0, "unreadable"), (1, "unreadable")], 60),
    "good again": ([(0, state(1)), (1, "unreadable"), (2, state(1))], 0),
}


@pytest.mark.parametrize(("arrivals", "seconds"), STALE.values(), ids=STALE)
def test_staleness_is_since_the_last_good_word(
    arrivals: list[tuple[float, State | str | Exception]], seconds: float
) -> None:
    log: Log = []
    node = Node([], Schedule(arrivals), log)
    run(node.live(9))
    assert node.agent.record.staleness(EPOCH + timedelta(seconds=60)) == seconds
