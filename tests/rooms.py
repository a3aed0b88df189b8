"""Who tests what when several workers share the suite: a folder is one worker's, so what its tests share is made once.

The folders whose tests look at the whole machine are one worker's together, one test after the other. What takes
longest comes first, so that the workers end together. (pytest-xdist's own groups are lost with pytest 9.2: it no longer
keeps an item's id where they are written.)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadScopeScheduling

MACHINE = ("sandbox", "standing")
"""The folders whose tests compare the machine's mounts and device nodes before and after; no other changes them."""

TAKING_TURNS = ("agent_host", "standing")
"""The folders in which a test of both users runs as one of them only, unless everything is wanted.

Their nodes cost most, and what differs between the users is the concern of other folders. A test that is marked
`both_users` runs as both all the same; one elsewhere that is marked `either_user` takes turns.
"""

USERS = ("root", "ordinary")

FIRST = (
    *("machine", "consumers", "agent_host", "smi", "cli", "nvml_library", "host", "doctor", "nvml", "mig"),
    *("simulators", "agent", "boards", "fire", "profile"),
)
"""The rooms that take more than a few seconds, the longest first."""


def rank(nodeid: str) -> int:
    """Where a test's room stands in the order."""
    where = room(nodeid)
    return FIRST.index(where) if where in FIRST else len(FIRST)


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Of the tests that take turns, the half that is not run: which one, each test's name decides, always alike."""
    out = []
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None or "uid" not in callspec.params or not _takes_turns(item):
            continue
        words = callspec.id.split("-")
        words.remove(callspec.params["uid"])
        turn = zlib.crc32(f"{getattr(item, 'originalname', '')}[{'-'.join(words)}]".encode()) % 2
        if USERS[turn] != callspec.params["uid"]:
            out.append(item)
    return out


def _takes_turns(item: pytest.Item) -> bool:
    folder = PurePath(item.nodeid.partition("::")[0]).parts[1]
    if folder in TAKING_TURNS:
        return not item.get_closest_marker("both_users")
    return item.get_closest_marker("either_user") is not None


def room(nodeid: str) -> str:
    """What is one worker's: the machine, or a folder of tests/."""
    folder = PurePath(nodeid.partition("::")[0]).parts[1]
    return "machine" if folder in MACHINE else folder


class RoomScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole rooms, in the order of collection; wants --no-loadscope-reorder."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)
