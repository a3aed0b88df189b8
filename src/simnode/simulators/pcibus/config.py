"""Config space: the 4096 bytes that a PCI Express function answers with, header and capabilities.

A function that has fallen off the bus answers every read with ones, as a bus does on which nobody answers.
"""

from __future__ import annotations

import struct

from simnode.simulators.pcibus.capabilities import capabilities, extended_capabilities
from simnode.simulators.pcibus.functions import Bar, Function
from simnode.simulators.pcibus.resources import Range, Resources

SIZE = 4096
_CAPABILITY_LIST, _CAPABILITIES_POINTER = 0x0010, 0x34
_COMMAND = 0x0406  # memory, bus master, no legacy interrupt
_BRIDGE_COMMAND = 0x0407


def config(function: Function, resources: Resources) -> bytes:
    """All of it."""
    if function.off_bus:
        return b"\xff" * SIZE
    space = bytearray(SIZE)
    vendor, device = function.device_id & 0xFFFF, function.device_id >> 16
    command = _COMMAND if function.buses is None else _BRIDGE_COMMAND
    struct.pack_into("<HHHH", space, 0, vendor, device, command, _CAPABILITY_LIST)
    struct.pack_into("<I", space, 0x08, function.class_code << 8 | function.revision)
    if function.buses is None:
        _endpoint(space, function, resources)
    else:
        _bridge(space, function, resources)
    _chain(space, function)
    return bytes(space)


def bar_flags(bar: Bar) -> int:
    """The low bits of a base address register."""
    return (8 if bar.prefetchable else 0) | (4 if bar.wide else 0)


def _endpoint(space: bytearray, function: Function, resources: Resources) -> None:
    for bar in function.bars:
        first = resources.bars[bar.index][0] | bar_flags(bar)
        struct.pack_into("<Q" if bar.wide else "<I", space, 0x10 + 4 * bar.index, first)
    struct.pack_into("<HH", space, 0x2C, function.subsystem_id & 0xFFFF, function.subsystem_id >> 16)
    struct.pack_into("<BB", space, 0x3C, 0xFF, 1)


def _bridge(space: bytearray, function: Function, resources: Resources) -> None:
    secondary, subordinate = function.buses or (0, 0)
    struct.pack_into("<BB", space, 0x0C, 0x10, 0)
    space[0x0E] = 0x01
    struct.pack_into("<BBB", space, 0x18, function.bus, secondary, subordinate)
    struct.pack_into("<BB", space, 0x1C, 0xF1, 0x01)  # no I/O: the last address lies before the first
    struct.pack_into("<HH", space, 0x20, *_window(resources.memory))
    base, limit = _window(resources.prefetchable)
    struct.pack_into("<HH", space, 0x24, base | 1, limit | 1)
    first, last = resources.prefetchable or (0, 0)
    struct.pack_into("<II", space, 0x28, first >> 32, last >> 32)
    struct.pack_into("<BBH", space, 0x3C, 0xFF, 1, 0x0003)


def _window(window: Range | None) -> tuple[int, int]:
    """Base and limit of a window below 4 GiB: address bits 31 to 20; closed, the base lies after the limit."""
    if window is None:
        return 0xFFF0, 0x0000
    return window[0] >> 16 & 0xFFF0, window[1] >> 16 & 0xFFF0


def _chain(space: bytearray, function: Function) -> None:
    chain = capabilities(function)
    offsets = list(chain)
    space[_CAPABILITIES_POINTER] = offsets[0]
    for offset, following in zip(offsets, [*offsets[1:], 0], strict=True):
        number, body = chain[offset]
        space[offset : offset + 2 + len(body)] = bytes([number, following]) + body
    extended = extended_capabilities(function)
    offsets = list(extended)
    for offset, following in zip(offsets, [*offsets[1:], 0][: len(offsets)], strict=True):
        number, version, body = extended[offset]
        header = struct.pack("<I", number | version << 16 | following << 20)
        space[offset : offset + 4 + len(body)] = header + body
