"""What is wrong with a node: one finding for each cause, however many consumers meet it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

_LONGEST = 400


class Finding(Struct, frozen=True):
    """`at` is a path in the node, `found` what is wrong there, `why` what comes of it, `want` what would be right.

    `consumers`: those that meet it, by their names in the table of consumers.
    """

    at: str
    found: str
    why: str
    want: str
    consumers: tuple[str, ...] = ()

    def line(self) -> str:
        """All of it, on one line, which a name or a program's words in it can neither break nor make endless."""
        parts = (_plain(text) for text in (self.at, self.found, self.why, self.want))
        return "{}: {}: {}; {}; want {}".format(", ".join(self.consumers), *parts)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; of those that say the same of the same path, the first, for the consumers of all."""
    known: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = finding.at, finding.found
        first = known.get(key, finding)
        known[key] = replace(first, consumers=tuple(dict.fromkeys((*first.consumers, *finding.consumers))))
    return tuple(known.values())


def _plain(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in short)
