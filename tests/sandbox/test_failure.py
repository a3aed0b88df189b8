"""A node that cannot be staged: one line, exit 1, and nothing left; and nodes beside each other."""

from __future__ import annotations

import pytest

from tests.sandbox.running import Runner


@pytest.mark.either_user
def test_wave_that_fails_is_told_in_one_line(runner: Runner) -> None:
    """The agent's first wave hits a limit on the size of files; the line names simulator, surface and reason."""
    done = runner.run("run", "--", "echo", "never", under=("prlimit", "--fsize=150000"))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: gpudriver: stage: driver/")
    assert "File too large" in line


@pytest.mark.either_user
def test_several_nodes_at_once(runner: Runner) -> None:
    """Nodes of one user know nothing of one another."""
    runs = [runner.start("run", "--gpus", str(n), "--", "nvidia-smi", "-L") for n in (1, 2, 3, 4)]
    assert [len(run.communicate()[0].splitlines()) for run in runs] == [1, 2, 3, 4]
