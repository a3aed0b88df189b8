"""What the tests of the engine need: a root that the user in question may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import memory


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty root of this process's own."""
    with memory.directory("simnode-host-") as place:
        (place / "root").mkdir(mode=0o755)
        yield place / "root"


@pytest.fixture
def shared_root(uid: int) -> Iterator[Path]:
    """An empty root that belongs to `uid`, which may be another than ours."""
    with memory.directory("simnode-host-") as place:
        os.chown(place, uid, uid if os.geteuid() == 0 else -1)
        yield place
