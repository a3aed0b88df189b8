"""What simnode says goes to standard error or nowhere, and shows on a terminal as what it is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.running import SIMNODE, Runner

WORDS = shlex.join(SIMNODE)
CASES = [
    pytest.param("run -- no-such-command", 127, id="command not found"),
    pytest.param("run --gpus -1 -- true", 2, id="usage fault"),
    pytest.param("run --profile /nonexistent -- true", 2, id="no such profile"),
    pytest.param("down --name none", 1, id="no such node"),
]


def _shell(runner: Runner, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script], env=runner.environ(), cwd="/", capture_output=True, text=True, timeout=30, check=False
    )


@pytest.fixture
def uid() -> int:
    """The caller's rights play no part in what is said."""
    return os.geteuid()


@pytest.mark.parametrize("device", ["/dev/full", "&-"])
@pytest.mark.parametrize(("words", "code"), CASES)
def test_line_that_cannot_be_written_changes_nothing(runner: Runner, words: str, code: int, device: str) -> None:
    """A full or a closed standard error: the same exit code, and nothing on standard output instead."""
    done = _shell(runner, f"{WORDS} {words} 2>{device}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_no_exception_of_the_command_vanishes(runner: Runner) -> None:
    """Whatever keeps it from being executed is said in one line, also what nobody has foreseen."""
    script = """
import os
from simnode.sandbox.command import Command
pid = Command(("true", "\\0"), {}, "/").fork()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], env=runner.environ(), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "simnode: the command cannot be run: embedded null byte\n")


def test_full_standard_error_where_namespaces_are_refused(refused: Runner) -> None:
    """The line on what is lost is lost, the command runs."""
    done = refused.run("run", "--", "true", under=("sh", "-c", 'exec "$@" 2>/dev/full', "-"))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("run", "--", "\x1b[31mcommand\nmore"), id="command"),
        pytest.param(("run", "--profile", "\x1b[31mprofile\nmore", "--", "true"), id="profile"),
        pytest.param(("run", "--nvidia-smi", "\x1b[31mprogram\nmore", "--", "true"), id="nvidia-smi"),
        pytest.param(("run", "--board", "\x1b[31mboard\nmore", "--", "true"), id="board"),
        pytest.param(("down", "--name", "\x1b[31mname\nmore"), id="name"),
        pytest.param(("\x1b[31mverb\nmore",), id="verb"),
    ],
)
def test_what_does_not_print_is_escaped(runner: Runner, words: tuple[str, ...]) -> None:
    """Nothing that a user quotes is obeyed by a terminal, or breaks the line."""
    (line,) = runner.run(*words).stderr.splitlines()
    assert line.startswith("simnode: ")
    assert "1b[31m" in line
    assert line.isprintable()


def test_valid_profile_is_named_escaped(runner: Runner, scratch: Path) -> None:
    """Standard output is a terminal as well."""
    path = scratch / "\x1b[31mprofile"
    path.write_text(runner.run("profile", "show").stdout)
    done = runner.run("profile", "validate", path)
    assert done.stdout.rstrip("\n").isprintable()
