"""When to try again what has failed: soon, then ever later, and at once when there is news."""

from __future__ import annotations


class Retry:
    """Exponential backoff between `first` and `ceiling` seconds; all times are the event loop's."""

    def __init__(self, first: float, ceiling: float) -> None:
        self._first = first
        self._ceiling = ceiling
        self.reset()

    def reset(self) -> None:
        """Forget all failures: due at once."""
        self._delay = self._first
        self.due = 0.0

    def failed(self, now: float) -> float:
        """Put the next attempt off; the seconds until then."""
        delay = self._delay
        self.due = now + delay
        self._delay = min(self._ceiling, delay * 2)
        return delay

    def hurry(self, now: float) -> None:
        """Something may have changed: due as soon as after a first failure, but what was learnt is not forgotten."""
        self.due = min(self.due, now + self._first)
