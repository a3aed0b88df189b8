"""Killed at any moment, while profile and overrides change: the next agent makes the host exactly what is wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simnode.sources.file import OVERRIDES
from tests.agent_host.conftest import Make
from tests.agent_host.running import HostRoot, snapshot, staged, without_what_outlives
from tests.examples import MORE
from tests.users import as_user

ROOT = Path(__file__).parents[2]
ROUNDS, KILLS = (10 if MORE > 1 else 1), 20
"""200 kills of each user's agent where everything is wanted. The users' agents die at different moments."""


@pytest.mark.both_users
@pytest.mark.timeout(300)
def test_after_many_kills_the_host_is_what_is_wanted_and_then_as_before(host: HostRoot, another: Make) -> None:
    before = snapshot(host.root)
    for turn in range(ROUNDS):
        seed = 2 * turn + bool(host.uid)
        subprocess.run(
            [sys.executable, "-P", "-m", "tests.agent_host.killing", host.root, host.config, str(seed), str(KILLS)],
            cwd=ROOT,
            env=host.environ() | {"PYTHONPATH": str(ROOT)},
            **as_user(host.uid),
            check=True,
            timeout=120,
        )
        fresh = another()
        shutil.copy(host.config, fresh.config)
        overrides = host.node / OVERRIDES
        if overrides.exists():
            (fresh.node / OVERRIDES).parent.mkdir(parents=True)
            shutil.copy(overrides, fresh.node / OVERRIDES)
            for path in (fresh.node, *fresh.node.rglob("*")):
                os.chown(path, fresh.uid, fresh.uid)
        generation = int((host.node / "state/generation").read_text())
        agent, example = host.ready(host.agent()), fresh.ready(fresh.agent())
        assert staged(host.root) == staged(fresh.root)
        assert host.screen() == fresh.screen()
        assert host.metric("simnode_generation") > generation
        for each, process in ((host, agent), (fresh, example)):
            code, said = each.end(process)
            assert code == 0, said
        assert without_what_outlives(snapshot(host.root)) == before
