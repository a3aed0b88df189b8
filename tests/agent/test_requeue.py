"""Requeues and reports: the latest State and the last Facts decide, whatever came before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.agent import Reports
from simnode.state import Facts
from tests.agent.acting import Act, Log, Node, Planned, Reader, Schedule, Signaller, Stager, state, story
from tests.agent.virtual import run
from tests.examples import examples


def staged(log: Log, who: str) -> list[str]:
    return [line for line in story(log, "stage") if f" {who} stage begin" in line]


def test_a_requeue_stages_the_latest_state_again() -> None:
    log: Log = []
    simulators = [Signaller("a", log, signals=(5,)), Planned("b", log)]
    run(Node(simulators, Schedule([(0, state(1)), (3, state(2))]), log).live(9))
    assert staged(log, "b") == ["0 b stage begin 1/0", "3 b stage begin 2/0", "5 b stage begin 2/0"]


def test_a_requeue_of_who_can_plan_is_staged_only_if_that_changes_something() -> None:
    @dataclass
    class Planning(Planned, Signaller):
        pass

    log: Log = []
    run(Node([Planning("a", log, signals=(5,))], Schedule([(0, state(1))]), log).live(9))
    assert story(log, "plan") == ["5 a plan begin 1/0", "5 a plan end 1/0"]
    assert staged(log, "a") == ["0 a stage begin 1/0"]


def test_signals_coalesce_while_a_wave_runs() -> None:
    log: Log = []
    simulators = [Signaller("a", log, {"stage": [Act(10), Act()]}, signals=(1, 2, 3))]
    run(Node(simulators, Schedule([(0, state(1))]), log).live(30))
    assert staged(log, "a") == ["0 a stage begin 1/0", "10 a stage begin 1/0"]


def test_a_requeue_before_any_state_does_nothing() -> None:
    log: Log = []
    run(Node([Signaller("a", log, signals=(1,))], Schedule([(5, state(1))]), log).live(9))
    assert staged(log, "a") == ["5 a stage begin 1/0"]


def test_a_requeue_hurries_a_retry_yet_no_more_than_a_first_failure_would() -> None:
    log: Log = []
    failing = Signaller("a", log, {"stage": [*[Act(0, "x")] * 4, Act()]}, signals=(8, 8.1, 8.2))
    run(Node([failing], Schedule([(0, state(1))]), log, first_retry=1, slowest_retry=60).live(60))
    assert [line.split()[0] for line in staged(log, "a")] == ["0", "1", "3", "7", "9"]


def test_a_requeue_during_a_failing_attempt_hurries_the_next() -> None:
    log: Log = []
    failing = Signaller("a", log, {"stage": [Act(0, "x"), Act(3, "x"), Act()]}, signals=(2,))
    run(Node([failing], Schedule([(0, state(1))]), log, first_retry=1, slowest_retry=60).live(60))
    assert [line.split()[0] for line in staged(log, "a")] == ["0", "1", "5"]


def test_a_requeue_that_fails_is_asked_for_again() -> None:
    log: Log = []
    failing = Signaller("a", log, {"stage": [Act(), Act(0, "x"), Act()]}, signals=(5,))
    run(Node([failing], Schedule([(0, state(1))]), log, first_retry=2).live(60))
    assert [line.split()[0] for line in staged(log, "a")] == ["0", "5", "7"]


def test_requeues_that_break_are_logged_and_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Signaller):
        async def requeue(self) -> AsyncIterator[None]:
            yield
            raise OSError("no network")

    log: Log = []
    node = Node([Broken("a", log)], Schedule([(0, state(1)), (3, state(2))]), log)
    run(node.live(9))
    assert caplog.messages == ["a: requeue: no network"]
    assert node.agent.readiness().check().components["a"] == (False, "requeue: no network")
    assert staged(log, "a")[-1] == "3 a stage begin 2/0"


class Learner(Stager):
    """A simulator that remembers with which Facts it was staged and patched."""

    learnt: list[tuple[str, Facts]]

    async def stage(self, state: object, facts: Facts) -> None:  # noqa: ARG002
        self.learnt.append(("stage", facts))

    async def patch(self, state: object, facts: Facts) -> None:  # noqa: ARG002
        self.learnt.append(("patch", facts))


def learning(*reported: tuple[str, bool | int | str]) -> list[tuple[str, Facts]]:
    """What a Learner is called with when these facts are reported, one a second."""
    log: Log = []
    reports = Reports()
    learner = Learner("a", log)
    learner.learnt = []

    async def live() -> None:
        node = Node([learner], Schedule([(0, state(1))]), log, reports=reports)
        living = asyncio.create_task(node.live(20))
        for name, value in reported:
            await asyncio.sleep(1)
            reports.report(name, value)
        await living

    run(live())
    return learner.learnt


def test_a_fact_that_only_the_image_reads_is_a_patch() -> None:
    assert learning(("fabric_ready", True)) == [("stage", Facts()), ("patch", Facts.of(fabric_ready=True))]


def test_any_other_fact_is_a_wave() -> None:
    assert learning(("package", "x")) == [("stage", Facts()), ("stage", Facts.of(package="x"))]


def test_a_fact_reported_again_does_nothing() -> None:
    assert learning(("package", "x"), ("package", "x"), ("fabric_ready", True), ("fabric_ready", True)) == [
        ("stage", Facts()),
        ("stage", Facts.of(package="x")),
        ("patch", Facts.of(package="x", fabric_ready=True)),
    ]


_REPORTS = st.lists(
    st.tuples(st.sampled_from(["fabric_ready", "package", "other"]), st.sampled_from([True, False, 1, "x"])), max_size=8
)


@examples(60)
@given(_REPORTS)
def test_only_the_last_reports_count_and_each_change_costs_one_call(
    reports: list[tuple[str, bool | int | str]],
) -> None:
    learnt = learning(*reports)
    facts = Facts.of(**dict(reports))
    assert learnt[-1][1] == facts
    assert [each for what, each in learnt if what == "stage"][-1].same_structure(facts)
    assert all(one != other for (_, one), (_, other) in pairwise(learnt))


def test_facts_reported_before_the_first_state_are_there_from_the_start() -> None:
    log: Log = []
    reports = Reports()
    learner = Learner("a", log)
    learner.learnt = []
    reports.report("package", "x")
    run(Node([learner], Schedule([(0, state(1))]), log, reports=reports).live(5))
    assert learner.learnt == [("stage", Facts.of(package="x"))]


def test_a_thread_may_report() -> None:
    log: Log = []
    reports = Reports()
    reader = Reader("a", log)

    async def live() -> None:
        node = Node([reader], Schedule([(0, state(1))]), log, reports=reports)
        living = asyncio.create_task(node.live(20))
        await asyncio.sleep(1)
        thread = Thread(target=reports.report, args=("fabric_ready", True))
        thread.start()
        thread.join()
        await living

    run(live())
    assert story(log, "patch") == ["1 a patch begin 1/0", "1 a patch end 1/0"]
