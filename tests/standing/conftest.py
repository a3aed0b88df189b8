"""The sandbox's runner, and the promise that a test takes down what it brought up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.conftest import refused, runner, scratch, sharing
from tests.sandbox.running import Runner

__all__ = ["nodes", "refused", "runner", "scratch", "sharing"]


@pytest.fixture
def nodes(runner: Runner) -> Iterator[Runner]:
    """The runner; nodes that stand in the end are taken down, and nothing of them may be left."""
    yield runner
    done = runner.run("down", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (runner.scratch / "simnode").exists()
