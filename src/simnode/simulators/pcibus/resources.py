"""Which physical addresses each function has: its base address registers, and the windows of the bridges above them.

Small registers lie below 4 GiB, what is prefetchable high above; each is aligned to its size, and a bridge's window
holds those of everything below it, in whole MiB, as PCI wants it. What a document can ask for fits.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from simnode.simulators.pcibus.functions import Bar, Function, children

_LOW, _LOWER, _HIGH = 0x8000_0000, 0x4000_0000, 0x2000_0000_0000
_FOUR_GIB = 1 << 32
_GRANULE = 1 << 20

Range = tuple[int, int]
"""First and last address."""


class Resources(Struct, frozen=True):
    """The addresses of one function: of each register by its index, and of a bridge's windows, None if closed."""

    bars: Mapping[int, Range] = field(default_factory=dict)
    memory: Range | None = None
    prefetchable: Range | None = None


def resources(found: Mapping[str, Function]) -> dict[str, Resources]:
    """The resources of every function by its address."""
    low, high = (_Space(found, prefetchable=prefetchable) for prefetchable in (False, True))
    if low.fill(_LOW) > _FOUR_GIB:
        low.fill(_LOWER)
    high.fill(_HIGH)
    return {
        address: Resources(
            low.bars.get(address, {}) | high.bars.get(address, {}), low.windows.get(address), high.windows.get(address)
        )
        for address in found
    }


class _Space:
    """One of the two kinds of addresses, given out in the order of the bus."""

    def __init__(self, found: Mapping[str, Function], *, prefetchable: bool) -> None:
        self._found = found
        self._below = children(found.values())
        self._prefetchable = prefetchable
        self._sizes: dict[str, int] = {}
        self.bars: dict[str, dict[int, Range]] = {}
        self.windows: dict[str, Range] = {}

    def fill(self, start: int) -> int:
        """Place everything, from `start` on; where the last one ends."""
        for address in self._below.get("", ()):
            start = self._place(address, start)
        return start

    def _place(self, address: str, start: int) -> int:
        """Place the function and all below it; where the next may start."""
        if self._found[address].buses is not None:
            return self._open(address, start)
        for bar in sorted(self._chosen(address), key=lambda bar: -bar.size):
            first = _aligned(start, bar.size)
            start = first + bar.size
            self.bars.setdefault(address, {})[bar.index] = (first, start - 1)
        return start

    def _open(self, address: str, start: int) -> int:
        largest = self._largest(address)
        if not largest:
            return start
        first = end = _aligned(start, max(largest, _GRANULE))
        for each in self._below[address]:
            end = self._place(each, end)
        end = _aligned(end, _GRANULE)
        self.windows[address] = (first, end - 1)
        return end

    def _largest(self, address: str) -> int:
        """The size of the largest register of a function and all below it; each is asked once for each bridge above."""
        if address not in self._sizes:
            sizes = [bar.size for bar in self._chosen(address)]
            sizes += [self._largest(each) for each in self._below.get(address, ())]
            self._sizes[address] = max(sizes, default=0)
        return self._sizes[address]

    def _chosen(self, address: str) -> tuple[Bar, ...]:
        return tuple(bar for bar in self._found[address].bars if bar.prefetchable == self._prefetchable)


def _aligned(address: int, size: int) -> int:
    return -(-address // size) * size
