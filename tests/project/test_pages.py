"""Examples on the pages are what the program takes, and print what the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SIMNODE = Path(sys.executable).parent / "simnode"

_BLOCK = re.compile(r"^( *)```(yaml|console)\n(.*?)^\1```\n", re.DOTALL | re.MULTILINE)


def blocks(page: str, kind: str) -> list[str]:
    """The code blocks of a kind on a page, without their indent."""
    found = _BLOCK.findall((DOCS / page).read_text())
    return [re.sub(f"^{indent}", "", text, flags=re.MULTILINE) for indent, named, text in found if named == kind]


def simnode(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([SIMNODE, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_partitions_of_the_example_are_listed_as_the_page_lists_them(tmp_path: Path) -> None:
    """Between the dots every line is there, one after the other."""
    profile = tmp_path / "p.yaml"
    profile.write_text(simnode("profile", "show", "h100", cwd=tmp_path) + blocks("mig.md", "yaml")[0])
    (shown,) = blocks("mig.md", "console")
    command, _, told = shown.partition("\n")
    words = command.removeprefix("$ simnode ").split()
    listed = simnode(*words, cwd=tmp_path)
    pieces = [piece.strip("\n") for piece in told.split("…\n") if piece]
    assert len(pieces) == 2
    assert [piece for piece in pieces if piece not in listed] == []


def test_the_least_that_a_profile_can_say_is_enough(tmp_path: Path) -> None:
    least = next(text for text in blocks("profile.md", "yaml") if "version" in text)
    (tmp_path / "least.yaml").write_text(least)
    assert simnode("profile", "validate", "least.yaml", cwd=tmp_path) == "least.yaml: valid\n"


@pytest.mark.parametrize("key", ["system.driver_version", "name", "architecture", "total_bytes", "device_id"])
def test_without_any_of_it_it_is_none(tmp_path: Path, key: str) -> None:
    least = next(text for text in blocks("profile.md", "yaml") if "version" in text)
    name = key.rpartition(".")[2]
    (tmp_path / "less.yaml").write_text(re.sub(rf"\b{name}: [^,}}\n]+,? ?", "", least))
    done = subprocess.run(
        [SIMNODE, "profile", "validate", "less.yaml"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert f"{key}: is missing" in done.stderr
