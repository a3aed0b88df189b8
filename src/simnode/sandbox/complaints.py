"""Lines for the user on standard error, the one way in which the command line and the launcher speak.

A line that cannot be written is lost, and changes nothing: no exit code, and no other file. What a path or a document
smuggles into it reaches no terminal raw. Thin clients import this, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_ERROR = 2


def complain(line: str) -> None:
    """Write `simnode: LINE`, with everything escaped in it that does not print."""
    write_error(f"simnode: {printable(line)}\n")


def write_error(text: str) -> None:
    """Write `text` as it is. Nowhere, if standard error was closed: whatever has its number now is another file."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        os.write(_ERROR, text.encode(errors="surrogateescape"))


def printable(text: str) -> str:
    """`text` as one line that a terminal shows and does not obey."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
