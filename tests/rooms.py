"""Who tests what when several workers share the suite: a folder is one worker's, so what its tests share is made once.

The folders whose tests look at the whole machine are one worker's together, one test after the other, and come first,
for they take longest. (pytest-xdist's own groups are lost with pytest 9.2: it no longer keeps an item's id where they
are written.)
"""

from __future__ import annotations

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling

MACHINE = ("agent_host", "cli", "consumers", "sandbox", "standing")
"""The folders whose tests look at the processes, mounts or device nodes of the machine."""


def room(nodeid: str) -> str:
    """What is one worker's: the machine, or a folder of tests/."""
    folder = PurePath(nodeid.partition("::")[0]).parts[1]
    return "machine" if folder in MACHINE else folder


class RoomScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole rooms, in the order of collection; wants --no-loadscope-reorder."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)
