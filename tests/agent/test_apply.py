"""The apply wave: after the barrier, fail-fast, retried, and without a word to `staged`."""

from __future__ import annotations

from tests.agent.acting import Act, Log, Node, Publisher, Reader, Schedule, Stager, state, story
from tests.agent.virtual import run


def test_nobody_applies_before_everybody_has_staged() -> None:
    log: Log = []
    run(Node([Publisher("a", log), Stager("b", log, {"stage": [Act(7)]})], Schedule([(0, state(1))]), log).live(9))
    assert story(log, "stage", "apply", "staged") == [
        "0 a stage begin 1/0",
        "0 b stage begin 1/0",
        "0 a stage end 1/0",
        "7 b stage end 1/0",
        "7 agent staged green",
        "7 a apply begin 1/0",
        "7 a apply end 1/0",
        "9 agent staged red",
    ]


def test_nobody_applies_what_was_not_staged() -> None:
    log: Log = []
    failing = Stager("b", log, {"stage": [Act(0, "x")]})
    run(Node([Publisher("a", log), failing], Schedule([(0, state(1))]), log).live(9))
    assert story(log, "apply") == []


def test_the_first_failure_cancels_the_others_and_all_is_tried_again_while_staged_stays_green() -> None:
    log: Log = []
    failing = Publisher("a", log, {"apply": [Act(1, "refused"), Act()]})
    slow = Publisher("b", log, {"apply": [Act(5)]})
    run(Node([failing, slow], Schedule([(0, state(1))]), log, first_retry=2).live(20))
    assert story(log, "apply", "staged") == [
        "0 agent staged green",
        "0 a apply begin 1/0",
        "0 b apply begin 1/0",
        "1 a apply end 1/0 refused",
        "1 b apply end 1/0 cancelled",
        "3 a apply begin 1/0",
        "3 b apply begin 1/0",
        "3 a apply end 1/0",
        "8 b apply end 1/0",
        "20 agent staged red",
    ]


def test_the_wave_is_over_when_the_cancelled_have_ended_too() -> None:
    log: Log = []
    failing = Publisher("a", log, {"apply": [Act(1, "refused"), Act()]})
    deaf = Publisher("b", log, {"apply": [Act(5, deaf=True), Act()]})
    run(Node([failing, deaf], Schedule([(0, state(1)), (2, state(2))]), log).live(20))
    assert story(log, "apply", "stage")[4:] == [
        "0 a apply begin 1/0",
        "0 b apply begin 1/0",
        "1 a apply end 1/0 refused",
        "5 b apply end 1/0",
        "5 a stage begin 2/0",
        "5 b stage begin 2/0",
        "5 a stage end 2/0",
        "5 b stage end 2/0",
        "5 a apply begin 2/0",
        "5 b apply begin 2/0",
        "5 a apply end 2/0",
        "5 b apply end 2/0",
    ]


def test_a_newer_state_ends_the_wait_for_a_retry() -> None:
    log: Log = []
    failing = Publisher("a", log, {"apply": [Act(0, "refused"), Act()]})
    run(Node([failing], Schedule([(0, state(1)), (4, state(2))]), log, first_retry=100).live(20))
    assert story(log, "apply")[2:] == ["4 a apply begin 2/0", "4 a apply end 2/0"]


def test_a_failing_apply_holds_no_patch_back() -> None:
    log: Log = []
    simulators = [Publisher("a", log, {"apply": [Act(0, "refused")]}), Reader("b", log)]
    run(Node(simulators, Schedule([(0, state(1)), (4, state(1, 1))]), log, first_retry=100).live(20))
    assert story(log, "patch") == ["4 b patch begin 1/1", "4 b patch end 1/1"]


def test_an_apply_that_was_overtaken_is_skipped() -> None:
    log: Log = []
    simulators = [Publisher("a", log, {"stage": [Act(5)]})]
    run(Node(simulators, Schedule([(0, state(1)), (1, state(2))]), log).live(20))
    assert story(log, "apply") == ["10 a apply begin 2/0", "10 a apply end 2/0"]
