"""Writes docs/nvml-coverage.md: what a function, field id and `nvidia-smi -q -x` element answers, where, and its test.

    python -m tools.coverage            writes the page
    python -m tools.coverage --check    exit 1 if the page is not what this would write

Nothing in the page is written by hand but its words: what feeds a function comes from the table of cells and the
library's sources, where it answers from asking the library on every board, and which test holds it from the tests.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill

from simnode.nvml.cells import CELLS
from simnode.nvml.exports import EXPORTS
from tools.answers import ANSWERS, NO_PERMISSION, Answers, collect
from tools.fields import field_rows, scopes
from tools.sources import Sources, Tests
from tools.subjects import by_subject

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "nvml-coverage.md"
WIDTH = 130
CODES = {2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 6: "NOT_FOUND"}
HEAD = """\
# What NVML answers

Written by `python -m tools.coverage` from the table of cells, the library's sources, the tests, and the answers that
the library gives on each built-in board with its default driver; a test holds the page to them. How it works is in
[nvml](nvml.md).

- **answer** is what feeds a function: cells, which are keys of the profile (`simnode profile keys` explains them), or
  the file of `native/nvml/` that has the rule. *Sets* is what it changes through the control socket of a node of one's
  own; without that the call answers NO_PERMISSION. In capitals: what it refuses with, always.
- **boards** are the built-in ones that answer. *None* means that a profile can make it answer, and no built-in board
  does; *MIG*, that it answers for a partitioned GPU, its MIG devices or its instances.
- **test** is the file below `tests/` that says most about it; in brackets, where none names it, the one that holds all
  functions of its kind alike.
"""


def boards_text(named: Iterable[str], every: Sequence[str]) -> str:
    """The boards in as few words as possible."""
    chosen = set(named)
    missing = [board for board in every if board not in chosen]
    if not missing:
        return "all"
    if not chosen:
        return "none"
    if len(missing) < len(chosen):
        return f"all but {' '.join(missing)}"
    return " ".join(board for board in every if board in chosen)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table; raises ValueError for one that is wider than the documentation may be."""
    for row in (head, ["---"] * len(head), *rows):
        line = f"| {' | '.join(row)} |".replace("| --- ", "|---").replace("|--- |", "|---|")
        if len(line) > WIDTH:
            raise ValueError(f"{len(line)} characters: {line}")
        yield line


def _element(path: str) -> str:
    """The path, without what an element repeats of the one that it is in."""
    above, _, name = path.rpartition("/")
    last = above.rpartition("/")[2]
    return f"{above}/…{name.removeprefix(last)}" if last and name.startswith(f"{last}_") else path


class Coverage:
    """The page's contents, from what the library answered."""

    def __init__(self, answers: dict[str, Answers], sources: Sources, tests: Tests) -> None:
        self.answers = answers
        self.boards = tuple(answers)
        self._sources = sources
        self._tests = tests

    def answering(self, name: str) -> tuple[set[str], bool]:
        """The boards on which a function answers, and whether it takes a partitioned GPU."""
        plain = {board for board, found in self.answers.items() if found.codes[name] in ANSWERS}
        if plain:
            return plain, False
        return {board for board, found in self.answers.items() if found.partitioned.get(name) in ANSWERS}, True

    def kind(self, name: str) -> str:
        """answers, sets or refuses."""
        if self._sources.orders(name):
            return "sets"
        if self.answering(name)[0] or self._sources.cells(name):
            return "answers"
        return "refuses"

    def row(self, name: str) -> tuple[str, str, str, str]:
        """The row of a function."""
        kind, (boards, mig), test = self.kind(name), self.answering(name), self._tests.of(name)
        codes = {board: found.codes[name] for board, found in self.answers.items()}
        if kind == "refuses":
            refusals = [CODES.get(code, str(code)) for code in sorted(set(codes.values()), reverse=True)]
            return f"`{name}`", ", ".join(refusals), "", test
        if kind == "sets":
            boards = {board for board, code in codes.items() if code == NO_PERMISSION}
        where = boards_text(boards, self.boards)
        if mig and boards and kind == "answers":
            where = f"MIG: {where}"
        room = WIDTH - len(f"| `{name}` | sets  | {where} | {test} |")
        answer = self._sources.reads(name, room) if kind == "answers" else self._sources.sets(name, room)
        return f"`{name}`", answer, where, test

    def functions(self) -> Iterator[str]:
        """A table for each subject."""
        for subject, names in by_subject(EXPORTS):
            yield from ("", f"### {subject}", "")
            yield from table(("function", "answer", "boards", "test"), map(self.row, names))

    def summary(self) -> Iterator[str]:
        """Counts."""
        kinds = [self.kind(name) for name in EXPORTS]
        nowhere = sum(self.kind(name) == "answers" and not self.answering(name)[0] for name in EXPORTS)
        yield fill(
            f"Of {len(EXPORTS)} functions {kinds.count('answers')} answer ({nowhere} of them on no built-in board), "
            f"{kinds.count('sets')} set something, {kinds.count('refuses')} refuse. Of nvidia-ml-py's getters that "
            "take a device and nothing else, and of the fields that the board's driver knows, so many answer:",
            WIDTH - 10,
        )
        yield ""
        counts = [
            (f"`{board}`", "{} of {}".format(*found.getters), str(len({number for number, _ in found.fields})))
            for board, found in self.answers.items()
        ]
        yield from table(("board", "getters", "fields"), counts)

    def elements(self) -> Iterator[str]:
        """The rows of the elements of nvidia-smi's document, by their paths."""
        rows = [(f"`{_element(cell.xml)}`", f"`{cell.key}`") for cell in CELLS if cell.xml]
        yield from table(("element of a GPU", "cell"), sorted(rows))

    def page(self) -> str:
        """All of it."""
        fields = table(("id", "field", "answer", "boards"), field_rows(self.answers, boards_text))
        lines = [HEAD, *self.summary(), "", "## Functions", *self.functions(), "", "## Fields", "", *fields]
        lines += ["", "## Elements of nvidia-smi -q -x", "", *self.elements(), ""]
        return "\n".join(lines)


def made() -> str:
    """The page as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        answers = collect(Path(folder), scopes())
    return Coverage(answers, Sources(ROOT / "native" / "nvml"), Tests(ROOT / "tests")).page()


def main(arguments: Sequence[str]) -> int:
    """Writes or checks the page."""
    page = made()
    if "--check" not in arguments:
        PAGE.write_text(page)
        return 0
    if PAGE.exists() and PAGE.read_text() == page:
        return 0
    print("docs/nvml-coverage.md is not what the library does; python -m tools.coverage writes it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
