"""Where simulators report what they learn, and the Facts that come of it: of each name the last value, nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable

from simnode.state import Facts, FactValue


class Reports:
    """`report` is what simulators are given (contracts.Report); the agent follows `facts`. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._follower: Callable[[], None] | None = None
        self.facts = Facts()

    def report(self, name: str, value: FactValue) -> None:
        """Make `value` the fact `name`; the value it has already tells nobody anything."""
        with self._lock:
            facts = self.facts.having(name, value)
            follower = self._follower if facts is not self.facts else None
            self.facts = facts
        if follower is not None:
            follower()

    def follow(self, follower: Callable[[], None]) -> None:
        """Call `follower` after every change from now on, in whatever thread reported it; one follower only."""
        self._follower = follower
