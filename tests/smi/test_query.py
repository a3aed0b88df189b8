"""Our nvidia-smi -q and -q -x, to the byte what the real one tells of a node with its driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simnode.nvml.cells import CELLS
from simnode.state import Refusal, State
from tests.smi.conditions import CELLS as SHOWN
from tests.smi.conditions import CODES, CONDITIONS
from tests.smi.conftest import Images, Smi
from tests.smi.documents import BUILT, FORMS, MORE, SECTIONS, same
from tests.smi.nodes import change, node

Publish = Callable[[State], Path]
AT_ONCE = 64
CHOSEN = ("-q", "-d", "CLOCK,POWER,UTILIZATION,ACCOUNTING")
# Refusals are in test_every_refusal, and the real program speaks its own release's dialect, whatever the driver.
ELSEWHERE = (*(f"{name}-{word}" for name in SHOWN for word in CODES), "driver-")
KNOWN = [condition for condition in CONDITIONS if not condition.startswith(ELSEWHERE)]


@pytest.mark.parametrize("condition", KNOWN)
def test_the_document_is_the_same(condition: str, images: Images, real: Smi) -> None:
    """Every line of XML, and the exit code, in every condition that the table knows."""
    same(BUILT, real, images(condition), *FORMS["xml"])


@pytest.mark.parametrize("condition", [condition for condition in KNOWN if not condition.startswith("memory-words-")])
def test_the_lines_are_the_same(condition: str, images: Images, real: Smi) -> None:
    """Every line without XML, and the exit code."""
    same(BUILT, real, images(condition), *FORMS["lines"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("condition", MORE)
def test_what_the_table_does_not_show_is_the_same(
    condition: str, form: str, publish_state: Publish, real: Smi, ours: Smi
) -> None:
    """Counts, modes, limits, names: what only -q tells."""
    same(ours, real, publish_state(MORE[condition]()), *FORMS[form])


@pytest.mark.parametrize(
    ("code", "asked"),
    [(3, (FORMS["xml"], CHOSEN)), (15, (FORMS["xml"],)), (999, (FORMS["xml"], CHOSEN))],
    ids=["3", "15", "999"],
)
@pytest.mark.parametrize("first", range(0, len(CELLS), AT_ONCE))
def test_every_refusal_is_told_as_it_is(
    first: int, code: int, asked: tuple[tuple[str, ...], ...], publish_state: Publish, real: Smi
) -> None:
    """Each cell refused, on a GPU of its own."""
    cells = CELLS[first : first + AT_ONCE]
    state = node(len(cells))
    for gpu, cell in enumerate(cells):
        state = change(state, {cell.key: Refusal(code)}, gpu)
    image = publish_state(state)
    for arguments in asked:
        same(BUILT, real, image, *arguments)


@pytest.mark.parametrize("section", [*SECTIONS.split(","), "", ",", "ecc,,Power,", "POWER_SMOOTHING"])
@pytest.mark.parametrize("condition", ["gpus-1", "all-erring"])
def test_each_section_is_the_same(condition: str, section: str, images: Images, real: Smi) -> None:
    """-d with one."""
    same(BUILT, real, images(condition), "-q", "-d", section)


@pytest.mark.parametrize("condition", ["all-refused", "mig-with-processes", "processes-by-pid", "lost-middle"])
def test_all_sections_are_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """-d with every one of them."""
    same(ours, real, images(condition), "-q", "-d", SECTIONS)


USES = {
    "no-such-section": ("-q", "-d", "BOGUS"),
    "no-such-section-among-others": ("-q", "-d", "ECC, POWER"),
    "sections-of-xml": ("-q", "-x", "-d", "ECC"),
    "sections-of-units": ("-q", "-u", "-d", "ECC"),
    "sections-of-units-in-xml": ("-q", "-u", "-x", "-d", "BOGUS"),
    "units": ("-q", "-u"),
    "units-in-xml": ("-q", "-u", "-x"),
    "a-unit": ("-q", "-u", "-i", "0"),
    "a-gpu": ("-q", "-i", "1"),
    "a-gpu-in-xml": ("-q", "-x", "-i", "3"),
    "a-gpu-that-is-not": ("-q", "-i", "9"),
}


@pytest.mark.parametrize("arguments", USES.values(), ids=USES.keys())
@pytest.mark.parametrize("condition", ["gpus-8", "lost-all", "gpus-0"])
def test_uses_are_the_same(condition: str, arguments: tuple[str, ...], images: Images, real: Smi, ours: Smi) -> None:
    """What can and what cannot be asked."""
    same(ours, real, images(condition), *arguments)
