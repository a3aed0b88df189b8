"""What is wrong with a profile, as values: a loader collects every fault of a document before it gives up.

A fault is one line whatever it quotes, so that a caller can print it and exit.
"""

from __future__ import annotations

from msgspec import Struct

_SHOWN = 60


class Fault(Struct, frozen=True):
    """One thing that is wrong. `file` is a path or an option's name, `key` a dotted path, `line` counts from 1."""

    file: str
    key: str
    line: int | None
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        text = ": ".join(part for part in (where, self.key, self.message) if part)
        return "".join(char if char.isprintable() else _escaped(char) for char in text)


class UnknownKey(Fault, frozen=True):
    """A key that no schema knows: a mistake where a person waits for the answer, a warning where a node must go on."""


class ProfileError(Exception):
    """Raised by everything in this room that takes input; `faults` holds all that were found, in order of line."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


def quoted(text: str) -> str:
    """`text` as a message shows it: quoted, and cut if it is long."""
    return f'"{clipped(text)}"'


def clipped(text: str) -> str:
    """`text`, cut if it is long."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    """`faults` by file and line, each said once."""
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line or 0)))


def without_unknown(faults: list[Fault], unknown: list[Fault] | None) -> list[Fault]:
    """`faults`, of which unknown keys go to `unknown` if that is there."""
    if unknown is None:
        return faults
    unknown.extend(fault for fault in faults if isinstance(fault, UnknownKey))
    return [fault for fault in faults if not isinstance(fault, UnknownKey)]


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
