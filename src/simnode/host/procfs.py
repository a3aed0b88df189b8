"""Two texts of the machine's procfs, with lines of a simulated driver among the machine's own.

Lines that can be ours by their names go first, whatever they say: an agent reads on in a node whose /proc shows what it
has written itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

Procfs = Callable[[str], str]
"""The text of a file of the machine's procfs, by its name; "" where the kernel has none."""

_CHARACTER, _BLOCK = "Character devices:", "Block devices:"


def procfs(directory: Path = Path("/proc")) -> Procfs:
    """What is mounted there, read anew each time."""

    def read(name: str) -> str:
        try:
            return (directory / name).read_text()
        except FileNotFoundError:
            return ""

    return read


def with_majors(text: str, majors: Sequence[tuple[int, str]], names: Collection[str]) -> str:
    """`devices` with these character majors behind the machine's own, of which none is called one of `names`."""
    character, block = _sections(text)
    lines = [_CHARACTER, *_without(character, names), *(f"{major:>3} {name}" for major, name in majors), "", _BLOCK]
    return "\n".join([*lines, *block]) + "\n"


def holder(text: str, major: int, names: Collection[str]) -> str:
    """Which driver of `devices` has a character or block major, those called `names` aside; "" if none has."""
    for line in (line for section in _sections(text) for line in _without(section, names)):
        number, _, name = line.strip().partition(" ")
        if number == str(major):
            return name.strip()
    return ""


def with_modules(text: str, lines: Iterable[str]) -> str:
    """`modules` with these lines before the machine's own, as modules that were loaded last."""
    ours = tuple(lines)
    names = {line.partition(" ")[0] for line in ours}
    kept = (line for line in text.splitlines() if line.partition(" ")[0] not in names)
    return "".join(f"{line}\n" for line in (*ours, *kept))


def _sections(text: str) -> tuple[list[str], list[str]]:
    """The lines of the character and of the block devices."""
    character: list[str] = []
    block: list[str] = []
    section = character
    for line in text.splitlines():
        if line == _BLOCK:
            section = block
        elif line.strip() and line != _CHARACTER:
            section.append(line)
    return character, block


def _without(lines: Iterable[str], names: Collection[str]) -> Iterator[str]:
    return (line for line in lines if line.strip().partition(" ")[2].strip() not in names)
