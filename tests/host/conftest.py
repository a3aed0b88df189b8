"""What the tests of the engine need: a root that the user in question may write to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty root of this process's own."""
    place = tmp_path / "root"
    place.mkdir(mode=0o755)
    return place


@pytest.fixture
def shared_root(uid: int) -> Iterator[Path]:
    """An empty root that belongs to `uid`, which may be another than ours."""
    place = Path(tempfile.mkdtemp(prefix="simnode-host-"))
    os.chown(place, uid, uid if os.geteuid() == 0 else -1)
    try:
        yield place
    finally:
        shutil.rmtree(place)
