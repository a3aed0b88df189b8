"""Narrowing: before a wave may take anything away, what is published stops naming it."""

from __future__ import annotations

from dataclasses import dataclass, field

from simnode.contracts import Wanted
from tests.agent.acting import Act, Log, Node, Planned, Publisher, Schedule, Stager, numbers, state, story
from tests.agent.virtual import run


@dataclass
class Narrower(Publisher):
    """A publisher that remembers between what it was narrowed."""

    narrowed: list[tuple[int, int]] = field(default_factory=list)

    async def narrow(self, old: Wanted, new: Wanted) -> None:
        self.narrowed.append((numbers(old[0])[0], numbers(new[0])[0]))
        await super().narrow(old, new)


def test_every_applier_narrows_before_anybody_stages() -> None:
    log: Log = []
    simulators = [Narrower("a", log), Narrower("b", log, {"narrow": [Act(2)]}), Stager("c", log)]
    run(Node(simulators, Schedule([(0, state(1)), (9, state(2))]), log).live(20))
    assert [line for line in story(log, "narrow", "stage", "apply", "staged") if float(line.split()[0]) >= 9] == [
        "9 a narrow begin 2/0",
        "9 b narrow begin 2/0",
        "9 a narrow end 2/0",
        "11 b narrow end 2/0",
        "11 agent staged red",
        "11 a stage begin 2/0",
        "11 b stage begin 2/0",
        "11 c stage begin 2/0",
        "11 a stage end 2/0",
        "11 b stage end 2/0",
        "11 c stage end 2/0",
        "11 agent staged green",
        "11 a apply begin 2/0",
        "11 b apply begin 2/0",
        "11 a apply end 2/0",
        "11 b apply end 2/0",
        "20 agent staged red",
    ]


def test_before_the_first_wave_it_is_what_an_earlier_agent_may_have_published() -> None:
    log: Log = []
    narrower = Narrower("a", log)
    run(Node([narrower], Schedule([(0, state(1)), (9, state(2))]), log).live(20))
    assert narrower.narrowed == [(1, 1), (1, 2)]


def test_a_failing_narrow_fails_the_wave_and_staged_does_not_turn() -> None:
    log: Log = []
    narrower = Narrower("a", log, {"narrow": [Act(), Act(0, "busy"), Act()]})
    node = Node([narrower, Stager("b", log)], Schedule([(0, state(1)), (9, state(2))]), log, first_retry=3)
    run(node.live(20))
    assert story(log, "narrow", "staged")[3:] == [
        "9 a narrow begin 2/0",
        "9 a narrow end 2/0 busy",
        "12 a narrow begin 2/0",
        "12 a narrow end 2/0",
        "12 agent staged red",
        "12 agent staged green",
        "20 agent staged red",
    ]


def test_what_was_narrowed_in_vain_is_published_again() -> None:
    log: Log = []
    simulators = [Narrower("a", log), Narrower("b", log, {"narrow": [Act(), Act(0, "busy")]})]
    arrivals = [(0.0, state(1)), (9.0, state(2)), (10.0, state(1))]
    run(Node(simulators, Schedule(arrivals), log, first_retry=100).live(20))
    assert story(log, "stage", "apply", "staged")[-5:] == [
        "10 a apply begin 1/0",
        "10 b apply begin 1/0",
        "10 a apply end 1/0",
        "10 b apply end 1/0",
        "20 agent staged red",
    ]
    assert [line for line in story(log, "stage") if "2/0" in line] == []


def test_a_repair_and_an_empty_plan_take_nothing_away() -> None:
    @dataclass
    class Both(Planned, Narrower):
        pass

    log: Log = []
    both = Both("a", log)
    run(Node([both], Schedule([(0, state(1)), (9, state(3))]), log, resync_interval=60).live(70))
    assert both.narrowed == [(1, 1)]
