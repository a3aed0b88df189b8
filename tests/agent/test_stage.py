"""The stage wave: everybody at once, all errors, a deadline, retries, and what `staged` says meanwhile."""

from __future__ import annotations

import pytest

from simnode.agent import Failure
from tests.agent.acting import Act, Log, Node, Reader, Schedule, Stager, state, story
from tests.agent.virtual import run


def test_everybody_stages_at_once_and_green_comes_after_the_last() -> None:
    log: Log = []
    simulators = [Stager("a", log, {"stage": [Act(3)]}), Stager("b", log, {"stage": [Act(1)]})]
    run(Node(simulators, Schedule([(0, state(1))]), log).live(5))
    assert story(log, "stage", "staged") == [
        "0 a stage begin 1/0",
        "0 b stage begin 1/0",
        "1 b stage end 1/0",
        "3 a stage end 1/0",
        "3 agent staged green",
        "5 agent staged red",
    ]


def test_a_failure_cancels_no_sibling_and_all_are_told_sorted() -> None:
    log: Log = []
    simulators = [
        Stager("c", log, {"stage": [Act(0, "no space")]}),
        Stager("b", log, {"stage": [Act(2)]}),
        Stager("a", log, {"stage": [Act(1, "not permitted")]}),
    ]
    node = Node(simulators, Schedule([(0, state(1))]), log, first_retry=10)
    run(node.live(5))
    assert "2 b stage end 1/0" in story(log, "stage")
    assert story(log, "staged") == ["2 agent staged red a: stage: not permitted; c: stage: no space"]
    assert node.agent.staged().failures == (
        Failure("a", "stage", "", "not permitted"),
        Failure("c", "stage", "", "no space"),
    )


def test_a_failed_wave_is_retried_ever_later_and_then_green() -> None:
    log: Log = []
    failing = Stager("a", log, {"stage": [Act(0, "x"), Act(0, "x"), Act(0, "x"), Act(0, "x"), Act()]})
    run(Node([failing], Schedule([(0, state(1))]), log, first_retry=1, slowest_retry=3).live(60))
    assert [line for line in story(log, "stage") if "begin" in line] == [
        "0 a stage begin 1/0",
        "1 a stage begin 1/0",
        "3 a stage begin 1/0",
        "6 a stage begin 1/0",
        "9 a stage begin 1/0",
    ]
    assert story(log, "staged")[-2:] == ["9 agent staged green", "60 agent staged red"]


def test_a_newer_state_ends_the_wait_for_a_retry() -> None:
    log: Log = []
    failing = Stager("a", log, {"stage": [Act(0, "x"), Act()]})
    run(Node([failing], Schedule([(0, state(1)), (2, state(2))]), log, first_retry=100).live(50))
    assert story(log, "stage") == [
        "0 a stage begin 1/0",
        "0 a stage end 1/0 x",
        "2 a stage begin 2/0",
        "2 a stage end 2/0",
    ]


def test_a_newer_state_is_not_held_back_by_the_failure_of_an_older_one() -> None:
    log: Log = []
    failing = Stager("a", log, {"stage": [Act(3, "x"), Act()]})
    run(Node([failing], Schedule([(0, state(1)), (1, state(2))]), log, first_retry=100).live(50))
    assert story(log, "stage")[2:] == ["3 a stage begin 2/0", "3 a stage end 2/0"]


def test_the_newest_state_wins_and_what_came_between_is_skipped() -> None:
    log: Log = []
    slow = Stager("a", log, {"stage": [Act(10)]})
    arrivals = [(0.0, state(1)), (2.0, state(2)), (4.0, state(3)), (6.0, state(4))]
    run(Node([slow], Schedule(arrivals), log).live(30))
    assert story(log, "stage", "staged") == [
        "0 a stage begin 1/0",
        "10 a stage end 1/0",
        "10 agent staged green",
        "10 agent staged red",
        "10 a stage begin 4/0",
        "20 a stage end 4/0",
        "20 agent staged green",
        "30 agent staged red",
    ]


def test_going_back_to_an_older_state_stages_it_again() -> None:
    log: Log = []
    run(Node([Stager("a", log)], Schedule([(0, state(1)), (1, state(2)), (2, state(1))]), log).live(5))
    assert [line for line in story(log, "stage") if "begin" in line] == [
        "0 a stage begin 1/0",
        "1 a stage begin 2/0",
        "2 a stage begin 1/0",
    ]


def test_going_back_after_a_failed_wave_stages_everything_again() -> None:
    log: Log = []
    simulators = [Stager("a", log), Stager("b", log, {"stage": [Act(), Act(0, "x"), Act()]})]
    arrivals = [(0.0, state(1)), (1.0, state(2)), (2.0, state(1))]
    run(Node(simulators, Schedule(arrivals), log, first_retry=100).live(5))
    assert story(log, "stage", "staged")[-6:] == [
        "2 a stage begin 1/0",
        "2 b stage begin 1/0",
        "2 a stage end 1/0",
        "2 b stage end 1/0",
        "2 agent staged green",
        "5 agent staged red",
    ]


def test_an_equal_state_hurries_no_retry() -> None:
    log: Log = []
    failing = Stager("a", log, {"stage": [Act(0, "x"), Act()]})
    arrivals = [(0.0, state(1)), (1.0, state(1, generation=2))]
    run(Node([failing], Schedule(arrivals), log, first_retry=4).live(9))
    assert story(log, "stage")[2:] == ["4 a stage begin 1/0", "4 a stage end 1/0"]


def test_every_failure_is_an_error_of_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    log: Log = []
    simulators = [Stager("a", log, {"stage": [Act(0, "no\n space")]}), Stager("b", log, {"stage": [Act(0, "x")]})]
    run(Node(simulators, Schedule([(0, state(1)), (0, "unreadable")]), log, first_retry=100).live(9))
    assert caplog.messages == ["source: unreadable", "a: stage: no space", "b: stage: x"]
    assert {record.levelname for record in caplog.records} == {"ERROR"}


def test_an_equal_state_does_nothing() -> None:
    log: Log = []
    again = state(1, generation=2)
    run(Node([Stager("a", log), Reader("b", log)], Schedule([(0, state(1)), (1, again)]), log).live(5))
    assert story(log, "stage", "patch", "staged") == [
        "0 a stage begin 1/0",
        "0 b stage begin 1/0",
        "0 a stage end 1/0",
        "0 b stage end 1/0",
        "0 agent staged green",
        "5 agent staged red",
    ]


def test_an_error_of_the_source_leaves_the_last_state_in_force() -> None:
    log: Log = []
    run(Node([Stager("a", log)], Schedule([(0, "unreadable"), (1, state(1)), (2, "unreadable")]), log).live(5))
    assert story(log, "stage", "staged") == [
        "1 a stage begin 1/0",
        "1 a stage end 1/0",
        "1 agent staged green",
        "5 agent staged red",
    ]


def test_a_stage_past_its_deadline_fails_and_is_cancelled_while_others_are_done() -> None:
    log: Log = []
    hung, fine = Stager("a", log, {"stage": [Act(1000)]}), Stager("b", log, {"stage": [Act(4)]})
    run(Node([hung, fine], Schedule([(0, state(1))]), log, deadline=30, first_retry=100).live(50))
    assert story(log, "stage", "staged") == [
        "0 a stage begin 1/0",
        "0 b stage begin 1/0",
        "4 b stage end 1/0",
        "30 a stage end 1/0 cancelled",
        "30 agent staged red a: stage: did not return within 30 s",
    ]


def test_what_cannot_be_cancelled_keeps_its_owner_busy_and_nobody_else() -> None:
    log: Log = []
    deaf = Stager("a", log, {"stage": [Act(75, deaf=True), Act()]})
    other = Stager("b", log)
    run(Node([deaf, other], Schedule([(0, state(1)), (35, state(2))]), log, deadline=30, first_retry=5).live(200))
    assert story(log, "stage", "staged") == [
        "0 a stage begin 1/0",
        "0 b stage begin 1/0",
        "0 b stage end 1/0",
        "30 agent staged red a: stage: did not return within 30 s",
        "35 b stage begin 2/0",
        "35 b stage end 2/0",
        "65 agent staged red a: stage: an earlier stage has not returned for another 30 s",
        "70 b stage begin 2/0",
        "70 b stage end 2/0",
        "75 a stage end 1/0",
        "75 a stage begin 2/0",
        "75 a stage end 2/0",
        "75 agent staged green",
        "200 agent staged red",
    ]
