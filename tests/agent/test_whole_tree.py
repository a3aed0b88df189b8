"""Real time, real files, real processes: whoever holds the lock shared and sees green sees one whole tree."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import time
from ctypes import c_bool
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from simnode.agent import Agent, AgentConfig, LockHeldError, Staged, shared
from simnode.host import Host
from tests.agent.staging import FILES, Changing, Staging

SPAWN = multiprocessing.get_context("spawn")
SECONDS = 3.0


def _read(lock: Path, root: Path, staged: Synchronized[bool], end: Synchronized[bool], answers: object) -> None:
    """Look at the tree as an injector does, again and again; put (looks, torn looks) into `answers`."""
    looks = torn = 0
    while not end.value:
        try:
            with shared(lock):
                if not staged.value:
                    continue
                first = _contents(root)
                time.sleep(0.002)
                looks += 1
                torn += len(first) != 1 or _contents(root) != first
        except (LockHeldError, FileNotFoundError):
            time.sleep(0.001)
    answers.put((looks, torn))  # type: ignore[attr-defined]


def _contents(root: Path) -> set[str]:
    contents = {path.read_text() for path in (root / "tree").iterdir() if not path.name.startswith(".")}
    return contents if len(list((root / "tree").iterdir())) >= 2 * FILES else {*contents, "incomplete"}


def test_whoever_holds_the_lock_and_sees_green_sees_one_whole_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    lock = tmp_path / "staging.lock"
    staged, end = SPAWN.Value(c_bool, False), SPAWN.Value(c_bool, False)
    answers = SPAWN.Queue()
    host = Host(root, boot_id="boot")
    config = AgentConfig(
        (Staging("a", host), Staging("b", host)), Changing(SECONDS), logging.getLogger("tests"), staging_lock_path=lock
    )
    agent = Agent(config)

    def turned(turn: Staged) -> None:
        staged.value = turn.is_set()

    agent.staged().listen(turned)
    readers = [SPAWN.Process(target=_read, args=(lock, root, staged, end, answers)) for _ in range(3)]
    try:
        for reader in readers:
            reader.start()
        asyncio.run(agent.run())
        end.value = True
        looks = [answers.get(timeout=20) for _ in readers]
    finally:
        for reader in readers:
            reader.terminate()
            reader.join()
    assert [torn for _, torn in looks] == [0, 0, 0]
    assert sum(look for look, _ in looks) > 20
    assert agent.record.timings["stage"].count > 20
    assert list(root.iterdir()) == []
