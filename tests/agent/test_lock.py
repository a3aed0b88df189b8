"""The staging lock and the lock for life, against other descriptors and other processes."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import simnode.agent.lock as lock_module
from simnode.agent import LockHeldError, shared
from simnode.agent.lock import StagingLock, for_life
from tests.agent.acting import Act, Log, Node, Publisher, Schedule, Signaller, Stager, state, story
from tests.agent.virtual import run

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "staging.lock"


@contextmanager
def bare(path: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """An flock as somebody takes it who knows nothing of announcements."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def taken(path: Path) -> bool:
    """True if a bare shared flock is refused."""
    try:
        with bare(path):
            return False
    except BlockingIOError:
        return True


def test_it_excludes_both_kinds_of_readers_until_released(path: Path) -> None:
    lock = StagingLock(path)
    run(lock.acquire(1))
    assert taken(path)
    with pytest.raises(LockHeldError, match="the agent is staging"), shared(path):
        pass
    lock.release()
    assert not taken(path)
    with shared(path), shared(path):
        pass


def test_its_file_is_for_the_agent_alone_and_stays(path: Path) -> None:
    lock = StagingLock(path)
    run(lock.acquire(1))
    lock.release()
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_waits_for_readers_no_longer_than_it_should(path: Path) -> None:
    async def main() -> float:
        with bare(path), pytest.raises(LockHeldError, match=r"staging\.lock is held by others for 7 s now"):
            await StagingLock(path).acquire(7)
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(7)
    assert not taken(path)


def test_while_it_waits_new_readers_are_refused_and_it_gets_its_turn(path: Path) -> None:
    async def main() -> None:
        lock = StagingLock(path)
        with bare(path):
            waiting = asyncio.create_task(lock.acquire(10))
            await asyncio.sleep(1)
            with pytest.raises(LockHeldError), shared(path):
                pass
        await waiting
        assert lock.held

    run(main())


def test_a_reader_after_a_vain_wait_is_welcome(path: Path) -> None:
    async def main() -> None:
        with bare(path), pytest.raises(LockHeldError):
            await StagingLock(path).acquire(1)
        with shared(path):
            pass

    run(main())


def test_a_cancelled_wait_leaves_nothing(path: Path) -> None:
    async def main() -> None:
        with bare(path):
            waiting = asyncio.create_task(StagingLock(path).acquire(10))
            await asyncio.sleep(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        with shared(path):
            pass
        assert not taken(path)

    run(main())


def test_a_file_that_somebody_removed_meanwhile_is_not_the_lock(path: Path) -> None:
    async def main() -> None:
        lock = StagingLock(path)
        with bare(path):
            waiting = asyncio.create_task(lock.acquire(10))
            await asyncio.sleep(1)
            path.unlink()
        await waiting
        assert taken(path)
        lock.release()

    run(main())


def test_no_program_inherits_it(path: Path) -> None:
    lock = StagingLock(path)
    run(lock.acquire(1))
    program = "print(flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], close_fds=False, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        lock.release()
        assert not taken(path)
        child.kill()


def test_where_it_cannot_be_opened_it_is_not_held(tmp_path: Path) -> None:
    lock = StagingLock(tmp_path / "missing" / "staging.lock")
    with pytest.raises(FileNotFoundError):
        run(lock.acquire(1))
    assert not lock.held


def test_who_never_saw_an_agent_is_told(path: Path) -> None:
    with pytest.raises(FileNotFoundError), shared(path):
        pass


def _overlap(path: Path, first: float, until: float, refused: object) -> None:
    """Take the lock shared again and again, so that with a second one like this it is never free."""
    time.sleep(first)
    while time.monotonic() < until:
        try:
            with shared(path):
                time.sleep(0.02)
        except LockHeldError:
            refused.set()  # type: ignore[attr-defined]
            time.sleep(0.02)


def test_holders_that_overlap_all_the_time_do_not_starve_it(path: Path) -> None:
    with bare(path):
        pass
    until = time.monotonic() + 20
    refused = SPAWN.Event()
    readers = [SPAWN.Process(target=_overlap, args=(path, 0.01 * index, until, refused)) for index in range(4)]
    try:
        for reader in readers:
            reader.start()
        while not taken_exclusively(path):
            time.sleep(0.01)
        began = time.monotonic()
        lock = StagingLock(path)
        asyncio.run(lock.acquire(10))
        assert time.monotonic() - began < 2
        lock.release()
    finally:
        for reader in readers:
            reader.terminate()
            reader.join()


def taken_exclusively(path: Path) -> bool:
    """True if somebody holds it shared, so that an exclusive bare flock is refused."""
    try:
        with bare(path, fcntl.LOCK_EX):
            return False
    except BlockingIOError:
        return True


def _live(path: Path, ready: object) -> None:
    with for_life(path):
        ready.set()  # type: ignore[attr-defined]
        time.sleep(60)


def test_only_one_agent_lives_on_a_root_and_a_killed_one_makes_room(path: Path) -> None:
    ready = SPAWN.Event()
    other = SPAWN.Process(target=_live, args=(path, ready))
    other.start()
    try:
        assert ready.wait(20)
        log: Log = []
        node = Node([Stager("a", log)], Schedule([(0, state(1))]), log, life=path)
        with pytest.raises(LockHeldError, match=r"^another agent keeps this node and holds \S+staging\.lock: end it"):
            run(node.agent.run())
        assert log == []
    finally:
        other.kill()
        other.join()
    with for_life(path):
        pass


@pytest.fixture
def removed_when_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removes the lock file (as `simnode clean` does) between its opening and the first lock on it."""
    real = lock_module._flock
    todo = [path]

    def flock(descriptor: int, how: int) -> bool:
        while todo:
            todo.pop().unlink()
        return real(descriptor, how)

    monkeypatch.setattr(lock_module, "_flock", flock)


@pytest.mark.usefixtures("removed_when_locked")
def test_the_lock_for_life_is_on_the_file_that_others_will_open(path: Path) -> None:
    with for_life(path):
        assert taken(path)


@pytest.mark.usefixtures("removed_when_locked")
def test_a_reader_is_told_to_look_again_if_the_file_was_removed_meanwhile(path: Path) -> None:
    path.touch()
    with pytest.raises(LockHeldError, match="was replaced meanwhile: look again"), shared(path):
        pass


def test_a_wave_is_staged_under_the_lock_and_green_comes_after_its_release(path: Path) -> None:
    log: Log = []
    seen: list[tuple[str, bool]] = []

    class Watcher(Publisher):
        def _note(self, what: str, phase: str, about: tuple[int, int] | None, outcome: str = "") -> None:  # noqa: ARG002
            seen.append((f"{what} {phase}", taken(path)))

    node = Node([Watcher("a", log)], Schedule([(0, state(1))]), log, lock=path)
    node.agent.staged().listen(lambda staged: seen.append(("green" if staged.is_set() else "red", taken(path))))
    run(node.live(5))
    assert seen == [
        ("narrow begin", False),
        ("narrow end", False),
        ("stage begin", True),
        ("stage end", True),
        ("green", False),
        ("apply begin", False),
        ("apply end", False),
        ("red", False),
        ("revoke begin", True),
        ("revoke end", True),
        ("discard begin", True),
        ("discard end", True),
    ]
    assert not taken(path)


def test_without_the_lock_nothing_is_staged_staged_keeps_its_colour_and_it_is_tried_again(path: Path) -> None:
    log: Log = []
    node = Node(
        [Stager("a", log)], Schedule([(0, state(1)), (5, state(2))]), log, lock=path, lock_timeout=10, first_retry=3
    )

    async def live() -> tuple[str, bool]:
        living = asyncio.create_task(node.live(40))
        await asyncio.sleep(4)
        with bare(path):
            await asyncio.sleep(12)
            health = node.agent.readiness().check().components["agent"]
        await living
        return health[1], node.agent.liveness().check().ok

    assert run(live()) == (f"lock: {path} is held by others for 10 s now", True)
    assert [line for line in story(log, "stage", "staged") if not line.startswith("0")] == [
        "18 agent staged red",
        "18 a stage begin 2/0",
        "18 a stage end 2/0",
        "18 agent staged green",
        "40 agent staged red",
    ]


def test_a_stage_past_its_deadline_keeps_the_lock_until_it_returns(path: Path) -> None:
    log: Log = []
    deaf = Stager("a", log, {"stage": [Act(50, deaf=True), Act()]})
    node = Node([deaf], Schedule([(0, state(1))]), log, lock=path, deadline=10, first_retry=100)

    async def live() -> list[bool]:
        living = asyncio.create_task(node.live(90))
        held = []
        for _ in range(8):
            await asyncio.sleep(9.9)
            held.append(taken(path))
        await living
        return held

    assert run(live()) == [True] * 5 + [False] * 3
    assert "10 agent staged red a: stage: did not return within 10 s" in story(log, "staged")


def test_the_way_down_waits_for_the_lock_for_half_its_budget_and_goes_on_without(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log: Log = []
    node = Node([Publisher("a", log)], Schedule([(0, state(1))]), log, lock=path, shutdown_timeout=20)

    async def live() -> None:
        living = asyncio.create_task(node.live(5))
        await asyncio.sleep(4)
        with bare(path):
            await living

    run(live())
    assert story(log, "revoke", "discard") == [
        "15 a revoke begin",
        "15 a revoke end",
        "15 a discard begin",
        "15 a discard end",
    ]
    assert caplog.messages == [f"agent: lock: {path} is held by others for 10 s now; going on without it"]


def test_a_requeue_that_did_not_get_the_lock_is_not_forgotten(path: Path) -> None:
    log: Log = []
    signaller = Signaller("a", log, signals=(5,))
    node = Node([signaller], Schedule([(0, state(1))]), log, lock=path, lock_timeout=2, first_retry=4)

    async def live() -> None:
        living = asyncio.create_task(node.live(20))
        await asyncio.sleep(4)
        with bare(path):
            await asyncio.sleep(4)
        await living

    run(live())
    assert [line for line in story(log, "stage") if "begin" in line] == ["0 a stage begin 1/0", "11 a stage begin 1/0"]


def test_the_lock_is_kept_to_the_end_of_the_way_down_whoever_returns_meanwhile(path: Path) -> None:
    log: Log = []
    late = Stager("a", log, {"stage": [Act(50, deaf=True)]})
    slow = Stager("b", log, {"discard": [Act(10)]})
    node = Node([late, slow], Schedule([(0, state(1))]), log, lock=path, deadline=10, first_retry=100)

    async def live() -> tuple[bool, bool]:
        living = asyncio.create_task(node.live(45))
        await asyncio.sleep(52)
        during = taken(path)
        await living
        return during, taken(path)

    assert run(live()) == (True, False)
    assert story(log, "discard") == [
        "45 b discard begin",
        "50 a discard begin",
        "50 a discard end",
        "55 b discard end",
    ]
