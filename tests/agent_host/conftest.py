"""A host root of its own for each test, once for root and once for an ordinary user, and nothing left running."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests import memory
from tests.agent_host.running import BOARD, HostRoot

Make = Callable[[], HostRoot]


@contextmanager
def making(uid: int) -> Iterator[Make]:
    """Makes host roots for an agent that runs as `uid`; they go in the end, and their agents."""
    made: list[HostRoot] = []
    given = ExitStack()

    def make() -> HostRoot:
        scratch = given.enter_context(memory.directory("simnode-host-"))
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

    with given:
        yield make
        for host in made:
            host.clean_up()


@pytest.fixture
def another(uid: int) -> Iterator[Make]:
    """Makes host roots."""
    with making(uid) as make:
        yield make


@pytest.fixture
def host(another: Make) -> HostRoot:
    """One host root."""
    return another()


@pytest.fixture(scope="module")
def shared(uid: int) -> Iterator[HostRoot]:
    """One that the tests of a module share."""
    with making(uid) as make:
        yield make()
