"""Which field ids a driver knows, and what it calls by which number.

The cells and the library speak of fields by the numbers of the newest nvml.h (13.5). 25 fields had another number in
some releases, and every release ends somewhere; the library translates what a caller asks of the simulated driver.
Source: the headers and bindings of 33 releases each; where a release lies between two of them, the older one's numbers
hold until the newer one's. Drivers are numbers here: 580.65.06 is 580065.

Standard library only: the build reads it before anything is installed.
"""

from __future__ import annotations

from typing import NamedTuple


class Moved(NamedTuple):
    """From driver `first` on, before `end`: so many ids from `here` on are the newest header's from `there` on."""

    first: int
    end: int
    here: int
    ids: int
    there: int


# The first id that drivers from a release on do not have. 535 grew by the reset states within its branch.
LIMITS = (
    (0, 96),
    (450000, 147),
    (460000, 161),
    (520000, 167),
    (525000, 170),
    (525112, 187),
    (525131, 197),
    (535162, 228),
    (550000, 200),
    (550089, 228),
    (555000, 223),
    (560000, 230),
    (570000, 269),
    (575000, 274),
    (580126, 289),
    (595000, 296),
    (595046, 303),
    (615000, 308),
    (616000, 310),
)

MOVED = (
    Moved(555000, 570000, 199, 1, 200),  # NVLINK_GET_POWER_THRESHOLD_MAX
    Moved(555000, 570000, 200, 1, 199),  # IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE
    Moved(575000, 580082, 251, 5, 269),  # CLOCKS_EVENT_REASON_*, POWER_SYNC_BALANCING_*
    Moved(575000, 580082, 256, 18, 251),  # PWR_SMOOTHING_*
)


def driver_number(version: str) -> int:
    """`major.minor` of a driver version as one number. Raises ValueError."""
    major, minor, *_ = [*version.split("."), "0"]
    return int(major) * 1000 + int(minor)


def canonical(driver: int, field_id: int) -> int | None:
    """The newest header's number of what `driver` calls `field_id`; None if it has no such field."""
    if field_id >= max(limit for first, limit in LIMITS if first <= driver):
        return None
    for moved in MOVED:
        if moved.first <= driver < moved.end and 0 <= field_id - moved.here < moved.ids:
            return field_id - moved.here + moved.there
    return field_id
