"""Daemons: launched once, after the first good wave; told of later States; their early end is a fault."""

from __future__ import annotations

import asyncio
import logging

import pytest

from simnode.agent import ShutdownError
from tests.agent.acting import Act, Keeper, Log, Node, Publisher, Reader, Schedule, Stager, state, story
from tests.agent.virtual import run


def test_a_daemon_is_launched_once_after_the_first_good_wave_and_then_told() -> None:
    log: Log = []
    simulators = [Keeper("a", log), Stager("b", log, {"stage": [Act(0, "x"), Act(2), Act()]})]
    run(Node(simulators, Schedule([(0, state(1)), (9, state(2)), (12, state(3))]), log, first_retry=1).live(20))
    assert story(log, "run", "reload", "staged") == [
        "0 agent staged red b: stage: x",
        "3 agent staged green",
        "3 a run begin",
        "9 agent staged red",
        "9 agent staged green",
        "9 a reload begin 2/0",
        "9 a reload end 2/0",
        "12 agent staged red",
        "12 agent staged green",
        "12 a reload begin 3/0",
        "12 a reload end 3/0",
        "20 agent staged red",
        "20 a run end cancelled",
    ]


def test_a_patch_is_not_told() -> None:
    log: Log = []
    run(Node([Keeper("a", log), Reader("b", log)], Schedule([(0, state(1)), (9, state(1, 1))]), log).live(20))
    assert story(log, "reload") == []


def test_a_daemon_hears_only_of_what_is_staged() -> None:
    log: Log = []
    simulators = [Keeper("a", log), Stager("b", log, {"stage": [Act(), Act(0, "x")]})]
    run(Node(simulators, Schedule([(0, state(1)), (9, state(2))]), log).live(20))
    assert story(log, "reload") == []


def test_a_failing_reload_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log: Log = []
    simulators = [Keeper("a", log, {"reload": [Act(0, "x"), Act()]}), Publisher("b", log)]
    node = Node(simulators, Schedule([(0, state(1)), (9, state(2)), (10, state(3))]), log)
    run(node.live(20))
    assert caplog.messages == ["a: reload: x"]
    assert [line for line in story(log, "reload", "apply") if "begin" in line] == [
        "0 b apply begin 1/0",
        "9 a reload begin 2/0",
        "9 b apply begin 2/0",
        "10 a reload begin 3/0",
        "10 b apply begin 3/0",
    ]


def test_a_daemon_is_told_that_all_is_as_before_a_wave_that_failed() -> None:
    """Its own stage may have gone well in that wave, and made it end its service."""
    log: Log = []
    simulators = [Keeper("a", log), Stager("b", log, {"stage": [Act(), Act(0, "x"), Act()]})]
    run(Node(simulators, Schedule([(0, state(1)), (9, state(2)), (9.5, state(1))]), log).live(20))
    assert [line for line in story(log, "stage", "reload") if " a " in line and "begin" in line][1:] == [
        "9 a stage begin 2/0",
        "9.5 a stage begin 1/0",
        "9.5 a reload begin 1/0",
    ]


def test_a_daemon_that_could_not_be_told_is_told_again_and_nobody_takes_the_node_for_ready_meanwhile() -> None:
    log: Log = []
    node = Node([Keeper("a", log, {"reload": [Act(0, "x"), Act()]})], Schedule([(0, state(1)), (9, state(2))]), log)

    async def live() -> None:
        living = asyncio.create_task(node.live(30))
        await asyncio.sleep(9.5)
        assert node.agent.readiness().check().components["a"] == (False, "reload: x")
        await asyncio.sleep(15)
        assert node.agent.readiness().check().ok
        await living

    run(live())
    assert [line for line in story(log, "reload") if "begin" in line] == [
        "9 a reload begin 2/0",
        "10 a reload begin 2/0",
    ]


@pytest.mark.parametrize(
    ("act", "reason"), [(Act(5), "run: ended early"), (Act(5, "broken"), "run: broken")], ids=["returns", "breaks"]
)
def test_an_early_end_is_a_fault_and_it_is_not_launched_again(
    act: Act, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    log: Log = []
    node = Node([Keeper("a", log, {"run": [act]})], Schedule([(0, state(1)), (9, state(2))]), log)
    run(node.live(20))
    assert [(each.levelno, each.message) for each in caplog.records] == [(logging.ERROR, f"a: {reason}")]
    assert [line for line in story(log, "run") if "begin" in line] == ["0 a run begin"]
    assert node.agent.readiness().check().components["a"] == (False, reason)
    assert node.agent.record.errors["a", "run", ""] == 1


def test_daemons_have_ended_before_anything_is_revoked() -> None:
    class Both(Keeper, Publisher):
        pass

    log: Log = []
    run(Node([Both("a", log, {"run": [Act(13, deaf=True)]})], Schedule([(0, state(1))]), log).live(10))
    assert story(log, "run", "revoke", "discard")[1:] == [
        "13 a run end",
        "13 a revoke begin",
        "13 a revoke end",
        "13 a discard begin",
        "13 a discard end",
    ]


def test_a_daemon_that_does_not_end_is_left_behind_and_told() -> None:
    log: Log = []
    node = Node([Keeper("a", log, {"run": [Act(40, deaf=True)]})], Schedule([(0, state(1))]), log, shutdown_timeout=20)
    with pytest.raises(ShutdownError, match=r"^a: run: did not end within 10 s$"):
        run(node.live(10))
    assert story(log, "discard") == ["20 a discard begin", "20 a discard end"]


def test_what_a_daemon_fails_at_on_its_way_out_is_told_too() -> None:
    class Clumsy(Keeper):
        async def run(self) -> None:
            try:
                await super().run()
            finally:
                raise OSError("marker is not mine")

    log: Log = []
    with pytest.raises(ShutdownError, match=r"^a: run: marker is not mine$"):
        run(Node([Clumsy("a", log)], Schedule([(0, state(1))]), log).live(10))


def test_a_daemon_is_never_launched_if_nothing_was_ever_staged() -> None:
    log: Log = []
    simulators = [Keeper("a", log), Stager("b", log, {"stage": [Act(0, "x")]})]
    run(Node(simulators, Schedule([(0, state(1))]), log).live(30))
    assert story(log, "run") == []
