"""What a value of a document may look like, and the check that finds every place where it does not.

A schema is a tree of shapes: `Scalar`, `Table` (a mapping with known keys), `Items` (a list) and `Either` (a list or a
mapping). Checking never stops at the first fault. An unknown key is a fault that names the nearest known one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from simnode.profile.document import Node
from simnode.profile.faults import Fault, UnknownKey, clipped, quoted

NOT_AVAILABLE = "N/A"  # what captures and existing profiles write for a value that NVML refuses
_NOTHING = (None, "", NOT_AVAILABLE)
MOST_ADVISED = 10
"""How many faults are told before nobody looks any more for what an unknown key may mean: that takes a millisecond or
two, and a crowd of unknown keys is another mistake."""
_SHORTEST, _MOST_MEANT = 3, 3  # letters of a short form; words that it may be short for


class Scalar(Struct, frozen=True):
    """One value. `kind`: int, float, text, flag (true, false, 0, 1) or word (one of `choices`, in any case).

    `length` is the most bytes of a text, `pattern` what all of it must match, `expect` the right form in words. A
    switch (a word of enabled and disabled) may be written true and false; `spelled` lets an int be written as text.
    """

    kind: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    length: int = 0
    pattern: re.Pattern[str] | None = None
    expect: str = ""
    spelled: bool = False


class Table(Struct, frozen=True):
    """A mapping with these keys; `required` ones must be there."""

    keys: Mapping[str, Shape]
    required: tuple[str, ...] = ()


class Items(Struct, frozen=True):
    """A list of `most` entries at the most."""

    entry: Shape
    most: int = 4096


class Either(Struct, frozen=True):
    """A list of one shape or a mapping of another."""

    sequence: Items
    mapping: Table


Shape: TypeAlias = "Scalar | Table | Items | Either"


def check(node: Node, shape: Shape, key: str, faults: list[Fault]) -> None:
    """Append a fault for everything below `node` that is not as `shape` says; null is right unless required."""
    if node.value is None and not (isinstance(shape, Table) and shape.required):
        return
    if isinstance(shape, Either):
        shape = shape.mapping if isinstance(node.value, dict) else shape.sequence
    if isinstance(shape, Scalar):
        wrong = scalar_fault(node, shape)
        if wrong:
            faults.append(Fault(node.file, key, node.line, wrong))
    elif isinstance(shape, Table):
        _check_table(node, shape, key, faults)
    else:
        _check_items(node, shape, key, faults)


def word(node: Node | None, choices: tuple[str, ...]) -> str | None:
    """The choice that a node names, in the schema's spelling; None for none, null, N/A or anything else."""
    if node is None:
        return None
    if isinstance(node.value, bool) and "enabled" in choices:
        return "enabled" if node.value else "disabled"
    written = _written(node)
    return written if written in choices else _meant(written, choices)


def text(node: Node | None) -> str:
    """The text of a node as it was written; "" for none, null and N/A."""
    if node is None or node.value is None or node.value == NOT_AVAILABLE:
        return ""
    return _written(node)


def number(node: Node | None) -> int | None:
    """The integer of a node, flags as 0 and 1; None for none, null, N/A or anything else."""
    if node is None:
        return None
    if isinstance(node.value, str):
        return int(node.value) if node.value.isascii() and node.value.isdigit() and len(node.value) < 20 else None
    return int(node.value) if isinstance(node.value, int) else None


def decimal(node: Node | None) -> float | None:
    """The number of a node, whole or not; None for none, null, N/A or anything else."""
    if node is not None and isinstance(node.value, float):
        return node.value
    whole = number(node)
    return None if whole is None else float(whole)


def scalar_fault(node: Node, shape: Scalar) -> str:
    """What is wrong with a value that should be a `shape`; "" if nothing is."""
    value = node.value
    if isinstance(value, (dict, tuple)):
        return f"must be {form(shape)}, not a {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None or value == NOT_AVAILABLE:
        return ""
    if shape.kind == "text":
        return _text_fault(node, shape)
    if shape.kind == "word":
        return "" if word(node, shape.choices) is not None else _word_fault(node, shape)
    if shape.kind == "flag":
        return "" if isinstance(value, bool) or value in (0, 1) else f"must be true or false, not {_shown(node)}"
    if shape.spelled and isinstance(value, str) and number(node) is not None:
        value = number(node)
    if isinstance(value, bool) or not isinstance(value, int if shape.kind == "int" else (int, float)):
        return f"must be {form(shape)}, not {_shown(node)}"
    too_small = shape.minimum is not None and value < shape.minimum
    if too_small or (shape.maximum is not None and value > shape.maximum) or not math.isfinite(value):
        return f"must be {form(shape)}, not {_shown(node)}"
    return ""


def form(shape: Scalar) -> str:
    """The right form of a value, in words that go behind "must be"."""
    if shape.expect:
        return shape.expect
    if shape.kind == "word":
        return f"one of {', '.join(shape.choices)}" if len(shape.choices) > 1 else shape.choices[0]
    if shape.kind == "flag":
        return "true or false"
    if shape.kind == "text":
        return "text"
    noun = "an integer" if shape.kind == "int" else "a number"
    if shape.minimum is not None and shape.maximum is not None:
        return f"{noun} from {shape.minimum} to {shape.maximum}"
    return noun if shape.minimum is None else f"{noun} of {shape.minimum} or more"


def _check_table(node: Node, shape: Table, key: str, faults: list[Fault]) -> None:
    if node.value is not None and not isinstance(node.value, dict):
        faults.append(Fault(node.file, key, node.line, f"must be a mapping, not {_shown(node)}"))
        return
    entries = node.value or {}
    for name, child in entries.items():
        path = f"{key}.{name}" if key else name
        known = shape.keys.get(name)
        if known is None:
            meaning = did_you_mean(name, tuple(shape.keys)) if len(faults) < MOST_ADVISED else ""
            faults.append(UnknownKey(node.file, path, child.line, f"is no known key{meaning}"))
        else:
            check(child, known, path, faults)
    for name in shape.required:
        if name not in entries or entries[name].value in _NOTHING:
            path = f"{key}.{name}" if key else name
            faults.append(Fault(node.file, path, node.line, "is missing"))


def _check_items(node: Node, shape: Items, key: str, faults: list[Fault]) -> None:
    if not isinstance(node.value, tuple):
        faults.append(Fault(node.file, key, node.line, f"must be a list, not {_shown(node)}"))
        return
    if len(node.value) > shape.most:
        message = f"must have {shape.most} entries at the most, not {len(node.value)}"
        faults.append(Fault(node.file, key, node.line, message))
        return
    for index, entry in enumerate(node.value):
        path = f"{key}[{index}]"
        if isinstance(shape.entry, Scalar) and entry.value in _NOTHING:
            faults.append(Fault(entry.file, path, entry.line, f"must be {form(shape.entry)}, not {_shown(entry)}"))
        else:
            check(entry, shape.entry, path, faults)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` with the known words that are near, else ""."""
    return meant(near(name, known))


def meant(words: Sequence[str]) -> str:
    """`; did you mean "…", "…" or "…"?`, or "" for no words."""
    shown = [f'"{word}"' for word in words]
    listed = " or ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)
    return f"; did you mean {listed}?" if listed else ""


def near(name: str, known: Iterable[str], likeness: float = 0.66) -> tuple[str, ...]:
    """The known words that may be meant: the one spelled most like it, else those it is short for (temp, total)."""
    import difflib

    words = tuple(known)
    alike = difflib.get_close_matches(name, words, 1, likeness)
    if alike or len(name) < _SHORTEST:
        return tuple(alike)
    parts = name.casefold().split("_")
    return tuple(word for word in words if _short_for(parts, word.casefold().split("_")))[:_MOST_MEANT]


def _short_for(parts: list[str], whole: list[str]) -> bool:
    """Each of `parts` begins one of `whole`."""
    return all(any(word.startswith(part) for word in whole) for part in parts)


def _text_fault(node: Node, shape: Scalar) -> str:
    if isinstance(node.value, bool):
        return f"must be {form(shape)}, not {_shown(node)}; quote it if the word is meant"
    written = _written(node)
    if not written.isprintable():
        return f"must be printable text, not {_shown(node)}"
    if shape.length and len(written.encode()) > shape.length:
        return f"must be {shape.length} bytes at the most, not {len(written.encode())}"
    if shape.pattern is not None and written and not shape.pattern.fullmatch(written):
        return f"must be {form(shape)}, not {_shown(node)}"
    return ""


def _word_fault(node: Node, shape: Scalar) -> str:
    return f"must be {form(shape)}, not {_shown(node)}{did_you_mean(_written(node), shape.choices)}"


def _meant(written: str, choices: tuple[str, ...]) -> str | None:
    folded = _folded(written)
    return next((choice for choice in choices if _folded(choice) == folded), None)


def _folded(words: str) -> str:
    """`All On`, `all-on` and `ALL_ON` are one word."""
    return words.casefold().replace(" ", "_").replace("-", "_")


def _written(node: Node) -> str:
    return node.value if isinstance(node.value, str) else node.text


def _shown(node: Node) -> str:
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, tuple):
        return "a list"
    return quoted(node.value) if isinstance(node.value, str) else clipped(node.text or str(node.value))
