"""The house: imports go downward only, and what the project ships names nothing that it must not name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CLIENTS = ("simnode", "simnode.state", "simnode.nvml.cells", "simnode.nvml.layout", "simnode.control_client")


def test_imports_go_downward_only() -> None:
    """The contracts of pyproject.toml hold."""
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-logo"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", CLIENTS)
def test_light_modules_stay_light(module: str) -> None:
    """Neither asyncio nor YAML comes with the words, the types and the table."""
    code = f"import {module}, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "yaml"} & set(loaded)


def test_no_module_outgrows_its_idea() -> None:
    """500 lines are the ceiling, Python and C alike."""
    folders = ("src", "native", "bench", "tests")
    files = [
        file for folder in folders for kind in ("py", "c", "h") for file in (REPOSITORY / folder).rglob(f"*.{kind}")
    ]
    assert files
    assert [file for file in files if len(file.read_text().splitlines()) > 500] == []
