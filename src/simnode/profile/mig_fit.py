"""Where on a GPU its instances go: every wish one place, none over another, if there is any way at all.

Large instances go first and as high as they can, small ones as low, as the driver leaves room when it may choose; an
instance's id follows from its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Wish(Struct, frozen=True):
    """`size` slices in a row from one of `placements` on."""

    size: int
    placements: tuple[int, ...]


def places(wishes: Sequence[Wish]) -> tuple[int, ...] | None:
    """Where each begins, in the order of the wishes; None if they do not fit."""
    order = sorted(range(len(wishes)), key=lambda at: (-wishes[at].size, len(wishes[at].placements), at))
    found: dict[int, int] = {}
    if not _place(wishes, order, 0, found):
        return None
    return tuple(found[at] for at in range(len(wishes)))


def _place(wishes: Sequence[Wish], order: Sequence[int], taken: int, found: dict[int, int]) -> bool:
    if len(found) == len(order):
        return True
    at = order[len(found)]
    wish = wishes[at]
    for start in sorted(wish.placements, reverse=wish.size > 1):
        mask = ((1 << wish.size) - 1) << start
        if taken & mask == 0:
            found[at] = start
            if _place(wishes, order, taken | mask, found):
                return True
            del found[at]
    return False


def instance_id(start: int, size: int, memory_slices: int) -> int:
    """A GPU instance's id by its memory slices: the whole is 0, halves are 1 and 2, quarters 3 to 6, eighths from 7.

    So counts the kernel module, for boards with four memory slices just as far as they go.
    """
    parts = memory_slices // size
    return 0 if size == memory_slices else parts - 1 + start // size
