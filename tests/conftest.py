"""What every room's tests share: the two kinds of user, and the real programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests import examples, reach, rooms
from tests.consumers import fetch

ORDINARY = 61234
"""Uid and gid of the ordinary user when root runs the suite: one that no machine has given to anybody."""

Obtain = Callable[[str], fetch.Fetched]

settings.load_profile(examples.PROFILE)

_absent = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Open the way to the checkout, the interpreter and the cache for the unprivileged half."""
    config.stash[_absent] = {}
    if os.geteuid() == 0:
        cache = fetch.cache_directory(os.environ)
        try:
            reach.open_up([Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix), cache])
        except reach.Unreachable as error:
            raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest comes first; as root, some rooms' tests take turns between the two users."""
    if os.geteuid() == 0 and examples.MORE == 1:
        out = rooms.left_out(items)
        config.hook.pytest_deselected(items=out)
        gone = set(map(id, out))
        items[:] = [item for item in items if id(item) not in gone]
    items.sort(key=lambda item: rooms.rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> rooms.RoomScheduling:
    """With several workers, room by room."""
    return rooms.RoomScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name every real program whose tests were skipped, and why."""
    absent = config.stash[_absent]
    for name, reason in sorted(absent.items()):
        terminalreporter.write_line(f"real program skipped: {name}: {reason}")


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Obtain:
    """Gives a real program by its name in fetch.PROGRAMS; skips the test where it cannot be had, fails it in CI."""
    found, reasons = fetch.fetch(fetch.cache_directory(os.environ))

    def obtain(name: str) -> fetch.Fetched:
        if name in found:
            return found[name]
        reason = reasons.get(name, "no such name in tests/consumers/fetch.py")
        pytestconfig.stash[_absent][name] = reason
        if os.environ.get("CI"):
            pytest.fail(f"{name}: {reason}", pytrace=False)
        pytest.skip(f"{name}: {reason}")

    return obtain


@pytest.fixture(scope="module", params=["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"])
def uid(request: pytest.FixtureRequest) -> int:
    """Uid to run a program under: each test that takes it runs as root and as an ordinary user (alone, if not root)."""
    if request.param == "root":
        return 0
    return ORDINARY if os.geteuid() == 0 else os.geteuid()
