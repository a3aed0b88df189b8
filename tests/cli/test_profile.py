"""`simnode profile` and what every command has in common."""

from __future__ import annotations

from pathlib import Path

import pytest

import simnode as package
from tests.cli.test_run import simnode


def test_version(tmp_path: Path) -> None:
    """One line, name and number."""
    assert simnode("--version", cwd=tmp_path).stdout == f"simnode {package.__version__}\n"


def test_boards_are_listed(tmp_path: Path) -> None:
    """One a line, sorted."""
    listed = simnode("profile", "boards", cwd=tmp_path).stdout.splitlines()
    assert "h100" in listed
    assert listed == sorted(listed)


def test_shown_board_is_valid(tmp_path: Path) -> None:
    """The built-in documents pass the check that users' documents get."""
    shown = simnode("profile", "show", "h100", cwd=tmp_path)
    (tmp_path / "shown.yaml").write_text(shown.stdout)
    done = simnode("profile", "validate", "shown.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "shown.yaml: valid\n")


def test_shown_file_is_verbatim(tmp_path: Path) -> None:
    """Comments included."""
    text = "# mine\n" + simnode("profile", "show", cwd=tmp_path).stdout
    (tmp_path / "mine.yaml").write_text(text)
    assert simnode("profile", "show", "mine.yaml", cwd=tmp_path).stdout == text


def test_validate_names_every_fault_of_every_file(tmp_path: Path) -> None:
    """A good file between bad ones is said to be valid, and the exit code is that of a fault."""
    (tmp_path / "good.yaml").write_text(simnode("profile", "show", cwd=tmp_path).stdout)
    (tmp_path / "one.yaml").write_text("sytem: {}\n")
    (tmp_path / "two.yaml").write_text("a: 1\na: 2\n")
    done = simnode("profile", "validate", "one.yaml", "good.yaml", "two.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "good.yaml: valid\n"
    files = {line.split(":")[1].strip() for line in done.stderr.splitlines()}
    assert files == {"one.yaml", "two.yaml"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["profil"], "profil", id="unknown command"),
        pytest.param(["profile", "list"], "list", id="unknown subcommand"),
        pytest.param(["profile", "show", "h10"], 'did you mean "h100"', id="unknown board"),
        pytest.param(["profile", "validate"], "FILE", id="no file"),
        pytest.param(["profile", "validate", "missing.yaml"], "missing.yaml", id="no such file"),
        pytest.param([], "command", id="nothing"),
    ],
)
def test_fault_is_one_line_and_exit_2(tmp_path: Path, words: list[str], said: str) -> None:
    """As for `run`."""
    done = simnode(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: ")
    assert said in line


def test_help_is_printed(tmp_path: Path) -> None:
    """On standard output, successfully."""
    done = simnode("run", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--driver-version" in done.stdout
