"""docs/nvml-coverage.md is what the library does now, and says it of every function."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simnode.nvml.cells import CELLS
from simnode.nvml.exports import EXPORTS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "nvml-coverage.md"


def rows() -> dict[str, list[str]]:
    """The cells behind each function's name."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `nvml")]
    found = {name.strip("`"): rest for name, *rest in lines}
    assert len(found) == len(lines)
    return found


def test_the_page_is_what_its_program_writes() -> None:
    """In a process of its own: the library that it loads stays loaded."""
    command = [sys.executable, "-m", "tools.coverage", "--check"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_function_has_one_row() -> None:
    assert set(rows()) == set(EXPORTS)


def test_every_element_of_the_table_of_cells_has_a_row() -> None:
    elements = PAGE.read_text().partition("\n## Elements")[2]
    assert [cell.key for cell in CELLS if cell.xml and f"| `{cell.key}` |" not in elements] == []


def test_every_test_that_a_row_names_is_there() -> None:
    named = {row[-1].strip("()") for row in rows().values()}
    assert len(named) > 10
    assert [file for file in named if not (REPOSITORY / "tests" / f"{file}.py").is_file()] == []


def test_the_counts_add_up() -> None:
    said = re.search(
        r"Of (\d+) functions (\d+) answer \(\d+ of them on no built-in board\), (\d+) set something, (\d+) refuse",
        " ".join(PAGE.read_text().split()),
    )
    assert said
    every, *kinds = map(int, said.groups())
    assert every == sum(kinds) == len(EXPORTS)


@pytest.mark.parametrize(
    ("name", "answer", "boards"),
    [
        ("nvmlDeviceGetVbiosVersion", "`vbios_version`", "all"),
        ("nvmlDeviceGetRetiredPagesPendingStatus", "`retired_pages.pending_retirement`", "t4"),
        ("nvmlDeviceGetMarginTemperature", "`thermal.tlimit.reference_c`", "all but a100 t4"),
        ("nvmlDeviceGetPlatformInfo", "`platform.*`", "b200 gb200 gb300"),
        ("nvmlDeviceGetFanSpeed", "`fan.speed_percent`", "none"),
        ("nvmlDeviceGetComputeInstanceId", "`mig.c`", "MIG: all but l40s t4"),
        ("nvmlDeviceSetPersistenceMode", "sets `persistence_mode`", "all"),
        ("nvmlDeviceGetSupportedVgpus", "NOT_SUPPORTED", ""),
        ("nvmlDeviceRemoveGpu_v2", "NO_PERMISSION", ""),
    ],
)
def test_a_row_is_what_is_known_of_the_boards(name: str, answer: str, boards: str) -> None:
    assert rows()[name][:2] == [answer, boards]
