"""What a ctime tells: no more than the tick of the clock in which an object was last altered.

That is the kernel's tick, 10 ms at the most; or a second, or two, on file systems that keep no more of it, such as ext4
with inodes of 128 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import attrgetter

stamp: Callable[[os.stat_result], tuple[int, int, int]] = attrgetter("st_dev", "st_ino", "st_ctime_ns")
"""Which object it is, and when it was last altered: the ctime in ns comes last."""
_SECOND_NS = 1_000_000_000
_TICK_NS, _COARSE_TICK_NS = 10_000_000, 2 * _SECOND_NS


def settled(ctime_ns: int, before_ns: int) -> bool:
    """True if whatever is altered after `before_ns` (time.time_ns) gets another ctime than this."""
    return ctime_ns < before_ns - (_TICK_NS if ctime_ns % _SECOND_NS else _COARSE_TICK_NS)
