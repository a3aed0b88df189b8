"""What holds for every schedule: random States at random times, simulators that are slow, fail, hang and are deaf."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from simnode.agent import ShutdownError
from simnode.state import State
from tests.agent.acting import Act, Entry, Log, Node, Publisher, Reader, Schedule, Stager, numbers, state
from tests.agent.virtual import run

DEADLINE = 10
SHUTDOWN = 8
QUIET = 400
"""Long enough after the last arrival for every script to have come to its good end."""

Made = Callable[[str, Log], Stager]

_SECONDS = st.sampled_from([0.0, 0.5, 3.0, DEADLINE - 1.0, DEADLINE + 5.0, 2.5 * DEADLINE])
_ACTS = st.builds(Act, seconds=_SECONDS, error=st.sampled_from(["", "", "no space"]), deaf=st.booleans())
_SCRIPTS = st.fixed_dictionaries(
    {verb: st.lists(_ACTS, max_size=3).map(lambda acts: [*acts, Act()]) for verb in ("stage", "patch", "apply")}
)
_ARRIVALS = st.lists(
    st.tuples(st.integers(0, 60), st.builds(state, st.integers(1, 3), st.integers(0, 2)) | st.just("unreadable")),
    min_size=1,
    max_size=6,
).map(lambda arrivals: sorted(arrivals, key=lambda arrival: arrival[0]))


@st.composite
def _makers(draw: st.DrawFn) -> list[tuple[type[Stager], dict[str, list[Act]]]]:
    kinds = draw(st.lists(st.sampled_from([Stager, Publisher, Reader]), min_size=1, max_size=4))
    return [(kind, draw(_SCRIPTS)) for kind in kinds]


def live(
    makers: list[tuple[type[Stager], dict[str, list[Act]]]], arrivals: list[tuple[int, State | str]], seconds: float
) -> tuple[Log, ShutdownError | None]:
    """The log of an agent over these simulators and arrivals that is cancelled after `seconds`."""
    log: Log = []
    simulators = [kind(f"s{index}", log, script) for index, (kind, script) in enumerate(makers)]
    config = {"deadline": DEADLINE, "shutdown_timeout": SHUTDOWN, "first_retry": 1.0, "slowest_retry": 8.0}
    try:
        run(Node(simulators, Schedule(arrivals), log, quiet=True, **config).live(seconds))
    except ShutdownError as error:
        return log, error
    return log, None


def in_force(arrivals: list[tuple[int, State | str]], time: float) -> list[tuple[int, int]]:
    """What the newest State is at `time`: of several that arrive at that very time, any."""
    states = [(at, numbers(what)) for at, what in arrivals if isinstance(what, State) and at <= time]
    before = [about for at, about in states if at < time][-1:]
    return before + [about for at, about in states if at == time]


@settings(max_examples=150, deadline=None)
@given(_makers(), _ARRIVALS)
def test_in_the_end_everything_is_as_the_newest_state_says(
    makers: list[tuple[type[Stager], dict[str, list[Act]]]], arrivals: list[tuple[int, State | str]]
) -> None:
    log, error = live(makers, arrivals, QUIET)
    states = [what for _, what in arrivals if isinstance(what, State)]
    assert error is None
    for index, (kind, _) in enumerate(makers):
        mine = [entry for entry in log if entry.who == f"s{index}" and entry.time < QUIET]
        assert not states or last(mine, "stage", "patch" if kind is Reader else "stage") == (
            numbers(states[-1]) if kind is Reader else (numbers(states[-1])[0], None)
        )
        if kind is Publisher and states:
            assert last(mine, "apply") == (numbers(states[-1])[0], None)
    colours = [entry.phase for entry in log if entry.what == "staged" and entry.time < QUIET]
    assert colours[-1:] == (["green"] if states else [])


def last(entries: list[Entry], *whats: str) -> tuple[int, int | None]:
    """What the last of these calls, which must have ended well, was about; without a patch its structure only."""
    entry = [entry for entry in entries if entry.what in whats][-1]
    assert (entry.phase, entry.outcome) == ("end", "")
    assert entry.numbers is not None
    return entry.numbers if "patch" in whats else (entry.numbers[0], None)


@settings(max_examples=150, deadline=None)
@given(_makers(), _ARRIVALS, st.integers(0, 120))
def test_every_schedule_keeps_the_order(
    makers: list[tuple[type[Stager], dict[str, list[Act]]]], arrivals: list[tuple[int, State | str]], seconds: int
) -> None:
    log, _ = live(makers, arrivals, seconds)
    names = {f"s{index}" for index in range(len(makers))}
    check_one_at_a_time(log)
    check_barrier(log, names)
    check_newest(log, arrivals)
    check_turns(log)
    check_shutdown(log, names, {f"s{i}" for i, (kind, _) in enumerate(makers) if kind is Publisher}, seconds)


def check_one_at_a_time(log: Log) -> None:
    """No simulator is ever called while it still does something."""
    for _, entries in itertools.groupby(sorted(log, key=lambda entry: entry.who), key=lambda entry: entry.who):
        phases = [entry.phase for entry in entries if entry.what != "staged"]
        assert phases == ["begin" if index % 2 == 0 else "end" for index in range(len(phases))]


def check_barrier(log: Log, names: set[str]) -> None:
    """Whoever applies or patches a structure does so after everybody's last stage was of it, and ended well."""
    staged: dict[str, tuple[int, str, str]] = {}
    for entry in log:
        if entry.what == "stage":
            assert entry.numbers is not None
            staged[entry.who] = (entry.numbers[0], entry.phase, entry.outcome)
        if entry.what in ("apply", "patch") and entry.phase == "begin":
            assert entry.numbers is not None
            assert staged == dict.fromkeys(names, (entry.numbers[0], "end", ""))
        if entry.what == "staged" and entry.phase == "green":
            assert set(staged) == names
            assert {(phase, outcome) for _, phase, outcome in staged.values()} == {("end", "")}
            assert len({structure for structure, _, _ in staged.values()}) == 1


def check_newest(log: Log, arrivals: list[tuple[int, State | str]]) -> None:
    """A wave is about the State that is the newest when it begins; who is busy may begin late, within its deadline."""
    for entry in log:
        if entry.numbers is not None and entry.phase == "begin":
            newest = itertools.chain.from_iterable(
                in_force(arrivals, time) for time in range(max(0, int(entry.time) - DEADLINE), int(entry.time) + 1)
            )
            assert entry.numbers in list(newest)


def check_turns(log: Log) -> None:
    """Staged turns green, red, green …; only failed waves may tell their failures while it is red."""
    turns = [entry for entry in log if entry.what == "staged"]
    green = False
    for turn in turns:
        assert turn.phase == ("green" if not green else "red") or turn.outcome
        green = turn.phase == "green"
    assert not green


def check_shutdown(log: Log, names: set[str], publishers: set[str], seconds: int) -> None:
    """All is over within the budget, revokes begin before discards, and only who was busy all the while is left out."""
    down = [entry for entry in log if entry.what in ("revoke", "discard")]
    begun = [entry for entry in down if entry.phase == "begin"]
    assert all(seconds <= entry.time <= seconds + SHUTDOWN for entry in down)
    order = [entry.what for entry in begun]
    assert order == sorted(order, reverse=True)
    last_words = {name: [entry for entry in log if entry.who == name and entry not in down][-1:] for name in names}
    idle = {
        name for name, words in last_words.items() if all(word.phase == "end" and word.time < seconds for word in words)
    }
    assert names >= {entry.who for entry in begun if entry.what == "discard"} >= idle
    assert publishers >= {entry.who for entry in begun if entry.what == "revoke"} >= idle & publishers
