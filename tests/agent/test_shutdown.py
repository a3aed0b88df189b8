"""The way down: withdraw everywhere, then take away everywhere, whatever fails and whoever hangs."""

from __future__ import annotations

import asyncio
import logging

import pytest

from simnode.agent import Agent, AgentConfig, Failure, ShutdownError
from tests.agent.acting import Act, Log, Node, Publisher, Schedule, Stager, state, story
from tests.agent.virtual import run


def test_everything_is_revoked_before_anything_is_discarded() -> None:
    log: Log = []
    simulators = [
        Publisher("a", log, {"revoke": [Act(3)]}),
        Publisher("b", log, {"revoke": [Act(1)], "discard": [Act(2)]}),
        Stager("c", log),
    ]
    run(Node(simulators, Schedule([(0, state(1))]), log).live(10))
    assert story(log, "revoke", "discard", "staged")[1:] == [
        "10 agent staged red",
        "10 a revoke begin",
        "10 b revoke begin",
        "11 b revoke end",
        "13 a revoke end",
        "13 a discard begin",
        "13 b discard begin",
        "13 c discard begin",
        "13 a discard end",
        "13 c discard end",
        "15 b discard end",
    ]


def test_failures_stop_nothing_and_all_are_raised() -> None:
    log: Log = []
    simulators = [
        Publisher("a", log, {"revoke": [Act(0, "refused")], "discard": [Act(0, "busy")]}),
        Publisher("b", log),
    ]
    with pytest.raises(ShutdownError, match=r"^a: revoke: refused; a: discard: busy$") as raised:
        run(Node(simulators, Schedule([(0, state(1))]), log).live(10))
    assert raised.value.failures == (Failure("a", "revoke", "", "refused"), Failure("a", "discard", "", "busy"))
    assert {"10 b revoke end", "10 b discard end", "10 a discard begin"} <= set(story(log, "revoke", "discard"))


def test_what_was_never_staged_is_discarded_all_the_same() -> None:
    log: Log = []
    run(Node([Publisher("a", log)], Schedule([]), log).live(1))
    assert story(log, "stage", "revoke", "discard") == [
        "1 a revoke begin",
        "1 a revoke end",
        "1 a discard begin",
        "1 a discard end",
    ]


def test_a_wave_under_way_is_cancelled_first() -> None:
    log: Log = []
    run(Node([Stager("a", log, {"stage": [Act(20)]})], Schedule([(0, state(1))]), log).live(5))
    assert story(log, "stage", "discard", "staged") == [
        "0 a stage begin 1/0",
        "5 a stage end 1/0 cancelled",
        "5 a discard begin",
        "5 a discard end",
    ]


def test_a_discard_waits_for_the_stage_that_cannot_be_cancelled() -> None:
    log: Log = []
    run(Node([Stager("a", log, {"stage": [Act(20, deaf=True)]})], Schedule([(0, state(1))]), log).live(5))
    assert story(log, "discard") == ["20 a discard begin", "20 a discard end"]


def test_a_hung_revoke_leaves_half_of_the_budget_to_discarding() -> None:
    log: Log = []
    hung = Publisher("a", log, {"revoke": [Act(1000, deaf=True)]})
    other = Publisher("b", log, {"discard": [Act(14)]})
    with pytest.raises(ShutdownError) as raised:
        run(Node([hung, other], Schedule([(0, state(1))]), log, shutdown_timeout=30).live(10))
    assert list(map(str, raised.value.failures)) == [
        "a: revoke: did not return within 15 s",
        "a: discard: an earlier revoke has not returned for another 15 s",
    ]
    assert story(log, "discard") == ["25 b discard begin", "39 b discard end"]


def test_cancelling_again_does_not_cut_the_shutdown_short() -> None:
    log: Log = []
    node = Node([Stager("a", log, {"discard": [Act(5)]})], Schedule([(0, state(1))]), log)

    async def impatient() -> None:
        running = asyncio.create_task(node.agent.run())
        for _ in range(4):
            await asyncio.sleep(1)
            running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(impatient())
    assert story(log, "discard") == ["1 a discard begin", "6 a discard end"]


def test_the_end_of_the_stream_ends_the_agent() -> None:
    log: Log = []
    source = Schedule([(0, state(1)), (4, state(2))], endless=False)
    run(Node([Stager("a", log)], source, log).agent.run())
    assert story(log, "discard") == ["4 a discard begin", "4 a discard end"]
    assert source.closed_at == 4


def test_the_source_is_closed_when_its_stream_has_ended() -> None:
    log: Log = []
    source = Schedule([(0, state(1))], farewell=2)
    run(Node([Publisher("a", log)], source, log).live(5))
    assert source.closed_at == 7
    assert story(log, "revoke") == ["7 a revoke begin", "7 a revoke end"]


def test_a_source_that_breaks_ends_the_agent_with_its_error() -> None:
    log: Log = []
    node = Node([Stager("a", log)], Schedule([(0, state(1)), (4, ValueError("broken"))]), log)
    with pytest.raises(ValueError, match="broken"):
        run(node.agent.run())
    assert story(log, "discard") == ["4 a discard begin", "4 a discard end"]


def test_two_simulators_of_one_name_are_refused() -> None:
    log: Log = []
    with pytest.raises(ValueError, match="two simulators of one name among a, a"):
        Agent(AgentConfig((Stager("a", log), Stager("a", log)), Schedule([]), logging.getLogger("tests")))
