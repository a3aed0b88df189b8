"""A host root of its own for each test, once for root and once for an ordinary user, and nothing left running."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent_host.running import BOARD, HostRoot

Make = Callable[[], HostRoot]


@pytest.fixture
def another(uid: int) -> Iterator[Make]:
    """Makes host roots."""
    made: list[HostRoot] = []

    def make() -> HostRoot:
        scratch = Path(tempfile.mkdtemp(prefix="simnode-host-"))
        root = scratch / "root"
        for name in ("var/lib/other", "run/other", "proc", "dev", "etc"):
            (root / name).mkdir(parents=True)
        (root / "proc/version").write_text("Linux version 6.1\n")
        (root / "etc/hostname").write_text("node-1\n")
        shutil.copy(BOARD, scratch / "config.yaml")
        if os.geteuid() == 0:
            for path in (scratch, *scratch.rglob("*")):
                os.chown(path, uid, uid)
        made.append(HostRoot(root, uid, uuid.uuid4().hex))
        return made[-1]

    yield make
    for host in made:
        host.clean_up()
        shutil.rmtree(host.root.parent)


@pytest.fixture
def host(another: Make) -> HostRoot:
    """One host root."""
    return another()
