"""Writes one value into its cell: what a profile or an override gives, as the bytes that the library reads.

Whatever a cell cannot hold is refused here with the key's name. Compile checks the same against the same table first,
so a user sees these errors only for what came in another way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from simnode.nvml import cells
from simnode.nvml.cells import DEVICE, SUCCESS, Cell
from simnode.nvml.curves import Curve
from simnode.nvml.layout import RECORDS
from simnode.state import Counter, Gauge, Refusal, Value

U32 = 1 << 32
U64 = 1 << 64
SPAN_LIMIT = 1 << 46  # span * load must fit 63 bits

_WORD = struct.Struct("<II")
_WIDE = struct.Struct("<QI")
_GUID = struct.Struct("<16sI")
_GAUGE = struct.Struct("<qqI")
_COUNTER_STARTS = struct.Struct("<QQQ")
_STATUS = struct.Struct("<I")


class ImageError(ValueError):
    """Raised for a value that the image cannot hold, or a file that is no image; one line that says which and why."""


def write(block: bytearray, cell: Cell, value: Value, curve: Curve) -> None:
    """Write `value` into `cell` of the device `block`; counters need the device's `curve`. Raises ImageError."""
    if isinstance(value, Refusal):
        if not SUCCESS < value.code < U32:
            raise ImageError(f"{cell.key}: {value.code} is no nvmlReturn_t of a refusal")
        _clear(block, cell)
        _set_status(block, cell, value.code)
        return
    try:
        _WRITERS[cell.kind](block, cell, value, curve)
    except (TypeError, ValueError, OverflowError) as error:
        raise ImageError(f"{cell.key}: {error}") from None


@cache
def unset_device() -> bytes:
    """A present device of which nothing is known but what every cell answers then."""
    block = bytearray(DEVICE.size)
    for cell in cells.CELLS:
        if cell.default is None:
            _set_status(block, cell, cell.unset)
        elif cell.kind in ("word", "int"):
            _WORD.pack_into(block, DEVICE.offsets[cell.member], cell.default & U32 - 1, SUCCESS)
        else:
            struct.pack_into("<Q", block, DEVICE.offsets[cell.member], cell.default)
    struct.pack_into("<I", block, DEVICE.offsets["present"], 1)
    return bytes(block)


def text(value: object, length: int) -> bytes:
    """`value` as UTF-8, for a NUL-terminated array of `length` bytes."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    encoded = value.encode()
    if len(encoded) >= length:
        raise ValueError(f"{value!r} is longer than {length - 1} bytes")
    if b"\0" in encoded:
        raise ValueError(f"{value!r} has a NUL in it")
    return encoded


def _clear(block: bytearray, cell: Cell) -> None:
    at = DEVICE.offsets[cell.member]
    size = RECORDS[cell.record].size
    block[at : at + size] = bytes(size)


def _set_status(block: bytearray, cell: Cell, status: int) -> None:
    at = DEVICE.offsets[cell.member] + RECORDS[cell.record].offsets["status"]
    _STATUS.pack_into(block, at, status)


def _number(cell: Cell, value: Value, low: int, high: int) -> int:
    if isinstance(value, str) and cell.choices:
        if value not in cell.choices:
            raise ValueError(f"{value!r} is none of {', '.join(cell.choices)}")
        return cell.choices[value]
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    if not low <= value < high:
        raise ValueError(f"{value} is not between {low} and {high - 1}")
    return value


def _word(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    _WORD.pack_into(block, DEVICE.offsets[cell.member], _number(cell, value, 0, U32), SUCCESS)


def _int(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    number = _number(cell, value, -(U32 >> 1), U32 >> 1)
    _WORD.pack_into(block, DEVICE.offsets[cell.member], number & U32 - 1, SUCCESS)


def _wide(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    _WIDE.pack_into(block, DEVICE.offsets[cell.member], _number(cell, value, 0, U64), SUCCESS)


def _gauge(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    gauge = value if isinstance(value, Gauge) else Gauge(_number(cell, value, 0, U64 >> 1), 0)
    if not -SPAN_LIMIT < gauge.span < SPAN_LIMIT:
        raise ValueError(f"span {gauge.span} is beyond {SPAN_LIMIT - 1}")
    for end in (gauge.base, gauge.base + gauge.span):
        if not 0 <= end < U64 >> 1:
            raise ValueError(f"reaches {end}, which is not between 0 and {(U64 >> 1) - 1}")
    _GAUGE.pack_into(block, DEVICE.offsets[cell.member], gauge.base, gauge.span, SUCCESS)


def _counter(block: bytearray, cell: Cell, value: Value, curve: Curve) -> None:
    counter = value if isinstance(value, Counter) else Counter(_number(cell, value, 0, U64 >> 1), 0.0, 0.0)
    if counter.idle_rate < 0 or counter.span_rate < 0:
        raise ValueError("a counter never falls: its rates must be 0 or more")
    idle, span = curve.idle_rate(counter.idle_rate), curve.span_rate(counter.span_rate)
    if not (0 <= counter.start < U64 >> 1 and idle < U64 and span < U64):
        raise ValueError(f"{counter} is too large")
    _COUNTER_STARTS.pack_into(block, DEVICE.offsets[cell.member], counter.start, idle, span)
    _set_status(block, cell, SUCCESS)


def _guid(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no UUID")
    raw = bytes.fromhex(value.replace("-", ""))
    if len(raw) != 16:
        raise ValueError(f"{value!r} is no UUID of 32 hexadecimal digits")
    _GUID.pack_into(block, DEVICE.offsets[cell.member], raw, SUCCESS)


def _text(block: bytearray, cell: Cell, value: Value, _curve: Curve) -> None:
    encoded = text(value, cell.length)
    at = DEVICE.offsets[cell.member]
    block[at : at + cell.length] = encoded.ljust(cell.length, b"\0")
    _set_status(block, cell, SUCCESS)


_WRITERS: dict[str, Callable[[bytearray, Cell, Value, Curve], None]] = {
    "word": _word,
    "int": _int,
    "wide": _wide,
    "gauge": _gauge,
    "counter": _counter,
    "guid": _guid,
    "text": _text,
}
