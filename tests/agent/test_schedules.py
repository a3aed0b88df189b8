"""What holds for every schedule: random States, requeues, facts and lock holders at random times, over simulators that
are slow, fail, hang and are deaf."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from simnode.agent import LockHeldError, ShutdownError, shared
from simnode.state import State
from tests.agent.acting import (
    Act,
    Entry,
    Keeper,
    Log,
    Node,
    Planned,
    Publisher,
    Reader,
    Schedule,
    Signaller,
    Stager,
    numbers,
    state,
)
from tests.agent.virtual import run
from tests.examples import examples

DEADLINE = 10
LOCK_TIMEOUT = 4
SHUTDOWN = 8
QUIET = 1000
"""Long enough after the last arrival for every script to have come to its good end."""

Script = dict[str, list[Act]]
Arrivals = list[tuple[int, State | str]]


class Plot(NamedTuple):
    """What happens: each simulator's kind, script and times of requeues; States; who holds the lock when, how long."""

    makers: list[tuple[type[Stager], Script, tuple[int, ...]]]
    arrivals: Arrivals
    holds: list[tuple[int, int, bool]]


_SECONDS = st.sampled_from([0.0, 0.5, 3.0, DEADLINE - 1.0, DEADLINE + 5.0, 2.5 * DEADLINE])
_ACTS = st.builds(Act, seconds=_SECONDS, error=st.sampled_from(["", "", "no space"]), deaf=st.booleans())
_VERBS = ("stage", "patch", "narrow", "apply", "plan", "reload")
_SCRIPTS = st.fixed_dictionaries(
    {verb: st.lists(_ACTS, max_size=3).map(lambda acts: [*acts, Act()]) for verb in _VERBS}
)
_KINDS = st.sampled_from([Stager, Publisher, Reader, Keeper, Signaller, Planned])
_SIGNALS = st.lists(st.integers(0, 80), max_size=3).map(lambda times: tuple(sorted(times)))
_ARRIVALS = st.lists(
    st.tuples(st.integers(0, 60), st.builds(state, st.integers(1, 3), st.integers(0, 2)) | st.just("unreadable")),
    min_size=1,
    max_size=6,
).map(lambda arrivals: sorted(arrivals, key=lambda arrival: arrival[0]))
_HOLDS = st.lists(st.tuples(st.integers(0, 80), st.integers(1, 15), st.booleans()), max_size=4)
_PLOTS = st.builds(Plot, st.lists(st.tuples(_KINDS, _SCRIPTS, _SIGNALS), min_size=1, max_size=4), _ARRIVALS, _HOLDS)


class Play:
    """An agent over a plot, cancelled after `seconds`; `torn`: what holders of the lock saw that they must not."""

    def __init__(self, plot: Plot, seconds: float) -> None:
        self.log: Log = []
        self.error: ShutdownError | None = None
        self.torn: list[str] = []
        with tempfile.TemporaryDirectory() as directory:
            self._lock = Path(directory) / "staging.lock"
            self._node = Node(
                [self._cast(index, *maker) for index, maker in enumerate(plot.makers)],
                Schedule(plot.arrivals),
                self.log,
                quiet=True,
                lock=self._lock,
                deadline=DEADLINE,
                lock_timeout=LOCK_TIMEOUT,
                shutdown_timeout=SHUTDOWN,
                resync_interval=60,
                first_retry=1,
                slowest_retry=8,
            )
            run(self._run(plot, seconds))

    def _cast(self, index: int, kind: type[Stager], script: Script, signals: tuple[int, ...]) -> Stager:
        made = kind(f"s{index}", self.log, script)
        if isinstance(made, Signaller):
            made.signals = signals
        return made

    async def _run(self, plot: Plot, seconds: float) -> None:
        holders = [asyncio.create_task(self._hold(*hold)) for hold in plot.holds]
        try:
            await self._node.live(seconds)
        except ShutdownError as error:
            self.error = error
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)

    async def _hold(self, start: int, seconds: int, polite: bool) -> None:
        """Hold the lock shared and, if staged is green then, see to it that it stays so and nobody stages."""
        await asyncio.sleep(start)
        descriptor = os.open(self._lock, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if polite:
                with shared(self._lock):
                    await self._look(seconds)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                await self._look(seconds)
        except (LockHeldError, BlockingIOError):
            pass
        finally:
            os.close(descriptor)

    async def _look(self, seconds: int) -> None:
        green, seen = self._node.agent.staged().is_set(), len(self.log)
        await asyncio.sleep(seconds)
        torn = [entry for entry in self.log[seen:] if entry.what == "stage"]
        if green and torn:
            self.torn.append(str(torn))


def in_force(arrivals: Arrivals, time: float) -> list[tuple[int, int]]:
    """What the newest State is at `time`: of several that arrive at that very time, any."""
    states = [(at, numbers(what)) for at, what in arrivals if isinstance(what, State) and at <= time]
    before = [about for at, about in states if at < time][-1:]
    return before + [about for at, about in states if at == time]


@examples(100)
@given(_PLOTS)
def test_in_the_end_everything_is_as_the_newest_state_says(plot: Plot) -> None:
    play = Play(plot, QUIET)
    states = [numbers(what) for _, what in plot.arrivals if isinstance(what, State)]
    assert play.error is None
    for index, (kind, _, _) in enumerate(plot.makers):
        mine = [entry for entry in play.log if entry.who == f"s{index}" and entry.time < QUIET]
        if not states:
            assert mine == [entry for entry in mine if entry.what == "run"]
            continue
        structure, runtime = states[-1]
        if all(other is Planned for other, _, _ in plot.makers):
            assert last(mine, "stage")[0] % 2 == structure % 2
        else:
            assert last(mine, "stage")[0] == structure
        if kind is Reader:
            assert last(mine, "stage", "patch") == (structure, runtime)
        if kind is Publisher:
            assert last(mine, "apply")[0] == structure
        if kind is Keeper:
            heard = [entry for entry in mine if entry.what in ("stage", "run", "reload") and entry.phase == "begin"]
            launch = [entry.what for entry in heard].index("run")
            told = [entry for entry in heard[launch:] if entry.what == "reload"] or heard[launch - 1 : launch]
            assert numbers_of(told[-1])[0] == structure
    colours = [entry.phase for entry in play.log if entry.what == "staged" and entry.time < QUIET]
    assert colours[-1:] == (["green"] if states else [])


def numbers_of(entry: Entry) -> tuple[int, int]:
    """What the call was about."""
    assert entry.numbers is not None
    return entry.numbers


def last(entries: list[Entry], *whats: str) -> tuple[int, int]:
    """What the last of these calls, which must have ended well, was about."""
    entry = [entry for entry in entries if entry.what in whats][-1]
    assert (entry.phase, entry.outcome) == ("end", "")
    return numbers_of(entry)


@examples(100)
@given(_PLOTS, st.integers(0, 120))
def test_every_schedule_keeps_the_order(plot: Plot, seconds: int) -> None:
    play = Play(plot, seconds)
    names = {f"s{index}" for index in range(len(plot.makers))}
    assert play.torn == []
    check_one_at_a_time(play.log)
    check_barrier(play.log, names)
    check_newest(play.log, plot.arrivals)
    check_turns(play.log)
    check_daemons(play.log)
    check_shutdown(
        play.log, names, {f"s{i}" for i, (kind, _, _) in enumerate(plot.makers) if kind is Publisher}, seconds
    )


def check_one_at_a_time(log: Log) -> None:
    """No simulator is ever called while it still does something; only a daemon works beside that."""
    for _, entries in itertools.groupby(sorted(log, key=lambda entry: entry.who), key=lambda entry: entry.who):
        phases = [entry.phase for entry in entries if entry.what not in ("staged", "run")]
        assert phases == ["begin" if index % 2 == 0 else "end" for index in range(len(phases))]


def check_barrier(log: Log, names: set[str]) -> None:
    """Nobody applies, patches or launches before everybody's latest stage has returned, and has gone well."""
    staged: dict[str, tuple[str, str]] = {}
    for entry in log:
        if entry.what == "stage":
            staged[entry.who] = (entry.phase, entry.outcome)
        if (entry.what in ("apply", "patch", "run", "reload") and entry.phase == "begin") or entry.phase == "green":
            assert staged == dict.fromkeys(names, ("end", ""))


def check_newest(log: Log, arrivals: Arrivals) -> None:
    """A wave is about the State that is the newest when it begins; who is busy may begin late, within its deadline."""
    slack = 3 * DEADLINE + LOCK_TIMEOUT
    for entry in log:
        if entry.numbers is not None and entry.phase == "begin":
            newest = itertools.chain.from_iterable(
                in_force(arrivals, time) for time in range(max(0, int(entry.time) - slack), int(entry.time) + 1)
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


def check_daemons(log: Log) -> None:
    """No daemon runs twice, and none is left running."""
    for _, entries in itertools.groupby(
        sorted((entry for entry in log if entry.what == "run"), key=lambda entry: entry.who),
        key=lambda entry: entry.who,
    ):
        assert [entry.phase for entry in entries] == ["begin", "end"]


def check_shutdown(log: Log, names: set[str], publishers: set[str], seconds: int) -> None:
    """All is over within the budget, revokes begin before discards, and only who was busy all the while is left out."""
    down = [entry for entry in log if entry.what in ("revoke", "discard")]
    begun = [entry for entry in down if entry.phase == "begin"]
    assert all(seconds <= entry.time <= seconds + SHUTDOWN for entry in down)
    order = [entry.what for entry in begun]
    assert order == sorted(order, reverse=True)
    calls = [entry for entry in log if entry.what != "run" and entry not in down]
    last_words = {name: [entry for entry in calls if entry.who == name][-1:] for name in names}
    idle = {
        name for name, words in last_words.items() if all(word.phase == "end" and word.time < seconds for word in words)
    }
    assert names >= {entry.who for entry in begun if entry.what == "discard"} >= idle
    assert publishers >= {entry.who for entry in begun if entry.what == "revoke"} >= idle & publishers
