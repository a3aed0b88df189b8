"""A change of the runtime alone: the patchers, in order, and nothing else."""

from __future__ import annotations

from tests.agent.acting import Act, Log, Node, Publisher, Reader, Schedule, Stager, state, story
from tests.agent.virtual import run


def test_a_runtime_change_patches_and_takes_no_wave() -> None:
    log: Log = []
    simulators = [Stager("a", log), Reader("b", log), Publisher("c", log)]
    run(Node(simulators, Schedule([(0, state(1)), (3, state(1, 1))]), log).live(5))
    assert [line for line in story(log, "stage", "patch", "apply", "staged") if not line.startswith("0")] == [
        "3 b patch begin 1/1",
        "3 b patch end 1/1",
        "5 agent staged red",
    ]


def test_a_patch_waits_for_the_wave_and_only_the_newest_is_made() -> None:
    log: Log = []
    reader = Reader("b", log, {"stage": [Act(10)]})
    arrivals = [(0.0, state(1)), (1.0, state(1, 1)), (2.0, state(1, 2))]
    run(Node([reader], Schedule(arrivals), log).live(20))
    assert story(log, "stage", "patch") == [
        "0 b stage begin 1/0",
        "10 b stage end 1/0",
        "10 b patch begin 1/2",
        "10 b patch end 1/2",
    ]


def test_a_failed_patch_is_retried_and_staged_stays_green() -> None:
    log: Log = []
    reader = Reader("b", log, {"patch": [Act(0, "x"), Act()]})
    run(Node([reader], Schedule([(0, state(1)), (1, state(1, 1))]), log, first_retry=4).live(20))
    assert story(log, "patch", "staged") == [
        "0 agent staged green",
        "1 b patch begin 1/1",
        "1 b patch end 1/1 x",
        "5 b patch begin 1/1",
        "5 b patch end 1/1",
        "20 agent staged red",
    ]


def test_after_a_failed_patch_the_older_runtime_is_patched_back() -> None:
    log: Log = []
    reader = Reader("b", log, {"patch": [Act(0, "x"), Act()]})
    arrivals = [(0.0, state(1)), (1.0, state(1, 1)), (2.0, state(1, 0, generation=3))]
    run(Node([reader], Schedule(arrivals), log, first_retry=100).live(20))
    assert story(log, "patch")[2:] == ["2 b patch begin 1/0", "2 b patch end 1/0"]
