"""What the agent has done so far, for whoever wants to show it: plain numbers that only the agent changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime

from msgspec import Struct, field

from simnode.agent.failures import Failures
from simnode.contracts import Update


class Timing(Struct):
    """How often something was done and how long it took, in seconds."""

    count: int = 0
    failed: int = 0
    total: float = 0.0
    last: float = 0.0


class Record(Struct):
    """The agent's numbers.

    `accepted`: generation of the newest State that the source gave; `generation`: of the one that is staged and read; 0
    before the first. `timings`: by action (plan, narrow, lock, stage, patch, reload, apply, revoke, discard).
    `errors`: by (simulator, action, surface), "" where no single surface is to blame; those of the agent itself and of
    the source go by "agent" and "source". `source_at`: of the latest good Update; `source_error`: text of the latest
    Update if that was an error, else "".
    """

    accepted: int = 0
    generation: int = 0
    timings: defaultdict[str, Timing] = field(default_factory=lambda: defaultdict(Timing))
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    source_at: datetime | None = None
    source_error: str = ""
    _failing_since: datetime | None = None

    def did(self, action: str, seconds: float, failures: Failures) -> None:
        """Something took so long and failed so."""
        timing = self.timings[action]
        timing.count += 1
        timing.failed += bool(failures)
        timing.total += seconds
        timing.last = seconds
        self.went_wrong(failures)

    def went_wrong(self, failures: Failures) -> None:
        """Count failures that belong to no timing."""
        self.errors.update((failure.simulator, failure.action, failure.surface) for failure in failures)

    def observed(self, update: Update) -> None:
        """The source has spoken."""
        self.source_error = update.error or ""
        if update.error is None:
            self.source_at, self._failing_since = update.at, None
        else:
            self.errors["source", "watch", ""] += 1
            self._failing_since = self._failing_since or self.source_at or update.at

    def staleness(self, now: datetime) -> float:
        """Since how many seconds the State in force may be out of date; 0 if the latest Update was a good one."""
        return 0.0 if self._failing_since is None else max(0.0, (now - self._failing_since).total_seconds())
