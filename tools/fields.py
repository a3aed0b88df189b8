"""The rows of field ids: which there are, what feeds them, on which boards they have a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pynvml

from simnode.nvml.cells import CELLS
from tools.answers import Answers

_PREFIX = "NVML_FI_"
_NEWEST = {308: "DEV_GPU_TEMP", 309: "PWR_SMOOTHING_LIMITED_TIME"}
"""The last of the header whose functions the library has; nvidia-ml-py may know fewer fields, or more."""

_SCOPES = {0: "GPU", 1: "module", 2: "memory"}

Row = tuple[int, str, str, str]


def names() -> dict[int, str]:
    """nvidia-ml-py's names, which are the header's, by number and without what all begin with; older ones go first."""
    found: dict[int, str] = {}
    for name, number in vars(pynvml).items():
        if name.startswith(_PREFIX) and number < min(_NEWEST):
            found.setdefault(number, name.removeprefix(_PREFIX))
    return dict(sorted(found.items())) | _NEWEST


def scopes() -> dict[int, frozenset[int]]:
    """The scopes of those ids that mean another value in each."""
    found: dict[int, set[int]] = {}
    for cell in CELLS:
        for number, scope, _ in cell.fields:
            if scope >= 0:
                found.setdefault(number, set()).add(scope)
    return {number: frozenset(known) for number, known in found.items()}


def field_rows(
    answers: Mapping[str, Answers], boards_text: Callable[[Iterable[str], Sequence[str]], str]
) -> Iterator[tuple[str, str, str, str]]:
    """Id, name, what feeds it, boards; ids in a row that differ in a number only are one row."""
    run: list[Row] = []
    for row in _rows(answers, boards_text):
        if run and not _goes_on(run[-1], row):
            yield _merged(run)
            run = []
        run.append(row)
    yield _merged(run)


def _rows(answers: Mapping[str, Answers], boards_text: Callable[[Iterable[str], Sequence[str]], str]) -> Iterator[Row]:
    cells = {(number, max(scope, 0)): cell.key for cell in CELLS for number, scope, _ in cell.fields}
    several = scopes()
    for number, name in names().items():
        for scope in sorted(several.get(number, {0})):
            boards = [board for board, found in answers.items() if (number, scope) in found.fields]
            key = cells.get((number, scope))
            rule = "`field_links.c`" if "NVLINK" in name or "NVSWITCH" in name else "`fields.c`"
            source = f"`{key}`" if key else rule if boards else "NOT_SUPPORTED"
            of = f", {_SCOPES[scope]}" if len(several.get(number, ())) > 1 else ""
            yield number, f"`{name}`{of}", source, boards_text(boards, tuple(answers)) if key or boards else ""


def _goes_on(before: Row, row: Row) -> bool:
    alike = before[2:] == row[2:] and row[0] == before[0] + 1
    return alike and (row[2] == "NOT_SUPPORTED" or _stem(before[1]) == _stem(row[1]))


def _stem(name: str) -> str:
    return re.sub(r"\d+`$", "", name)


def _merged(run: list[Row]) -> tuple[str, str, str, str]:
    (first, name, source, boards), (last, other, _, _) = run[0], run[-1]
    if first == last:
        return str(first), name, source, boards
    return f"{first} to {last}", f"{name} … {other}", source, boards
