"""What is wrong with a node: one finding for each cause, however many consumers meet it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """`at` is a path in the node, `found` what is wrong there, `why` what comes of it, `want` what would be right.

    `consumers`: those that meet it, by their names in the table of consumers.
    """

    at: str
    found: str
    why: str
    want: str
    consumers: tuple[str, ...] = ()

    def line(self) -> str:
        """All of it, on one line."""
        return f"{', '.join(self.consumers)}: {self.at}: {self.found}; {self.why}; want {self.want}"


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; of those that say the same of the same path, the first, for the consumers of all."""
    known: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = finding.at, finding.found
        first = known.get(key, finding)
        known[key] = replace(first, consumers=tuple(dict.fromkeys((*first.consumers, *finding.consumers))))
    return tuple(known.values())
