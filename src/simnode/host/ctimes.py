"""What a ctime tells: no more than the tick of the kernel's clock in which an object was last altered."""

from __future__ import annotations

_TICK_NS = 10_000_000


def settled(ctime_ns: int, before_ns: int) -> bool:
    """True if whatever is altered after `before_ns` (time.time_ns) gets another ctime than this."""
    return ctime_ns < before_ns - _TICK_NS
