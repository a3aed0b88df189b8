"""`simnode profile` and what every command has in common."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simnode as package
from tests.cli.test_run import simnode

FAULT_COMMANDS = ("inject", "list", "clear")


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
    files = {line.split(":")[1].strip() for line in done.stderr.splitlines() if "note: good.yaml: " not in line}
    assert files == {"one.yaml", "two.yaml"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["profil"], "profil", id="unknown command"),
        pytest.param(["profile", "list"], "list", id="unknown subcommand"),
        pytest.param(["statu"], "Did you mean 'status'?", id="command with a slip"),
        pytest.param(["--vesion"], "Did you mean '--version'?", id="option with a slip"),
        pytest.param(
            ["profile", "show", "h10"],
            '"h10" is neither a built-in board nor a file; did you mean "h100"?',
            id="unknown board",
        ),
        pytest.param(["profile", "show", "zzz"], "; the boards are a100, ", id="nothing like a board"),
        pytest.param(["agent"], "`simnode agent --help` tells more", id="no config"),
        pytest.param(["up", "lab"], "`simnode up --help` tells more", id="name without its option"),
        pytest.param(["profile", "validate"], "FILE", id="no file"),
        pytest.param(["profile", "validate", "missing.yaml"], "missing.yaml", id="no such file"),
    ],
)
def test_fault_is_one_line_and_exit_2(tmp_path: Path, words: list[str], said: str) -> None:
    """As for `run`."""
    done = simnode(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: ")
    assert said in line


@pytest.mark.parametrize(
    "command",
    [
        [],
        *([name] for name in ("run", "up", "exec", "ls", "down", "status", "set", "get", "reset", "agent", "clean")),
        *(["profile", *name] for name in ([], ["boards"], ["show"], ["validate"], ["keys"], ["schema"])),
        *(["fault", *name] for name in ([], *([name] for name in FAULT_COMMANDS))),
    ],
    ids=" ".join,
)
def test_every_command_has_help(tmp_path: Path, command: list[str]) -> None:
    """On standard output, successfully; `--help` is what the documentation is held against."""
    done = simnode(*command, "-h", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lower().startswith(f"usage: {' '.join(['simnode', *command])} ")


@pytest.mark.parametrize(
    "command",
    [*([name] for name in ("set", "get", "reset", "status", "ls", "down")), *(["fault", n] for n in FAULT_COMMANDS)],
    ids=" ".join,
)
def test_every_word_that_a_command_takes_is_explained(tmp_path: Path, command: list[str]) -> None:
    """Beside it or in the line below."""
    text = simnode(*command, "--help", cwd=tmp_path).stdout
    taken = re.findall(r"^(?:positional arguments|options):\n((?:  .*\n?)+)", text, re.MULTILINE)
    words = re.split(r"^  (?! )", "".join(taken), flags=re.MULTILINE)[1:]
    assert len(words) >= 2
    assert [word for word in words if not re.search(r"(?: {2,}|\n +)\S", word.strip())] == []


@pytest.mark.parametrize("group", [[], ["profile"], ["fault"]], ids=" ".join)
def test_a_bare_group_shows_its_commands(tmp_path: Path, group: list[str]) -> None:
    """As its help does, but as a mistake."""
    done = simnode(*group, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == simnode(*group, "--help", cwd=tmp_path).stdout


def test_keys_are_listed_with_what_each_may_be(tmp_path: Path) -> None:
    """Those that have every word in them, of GPUs and of the node."""
    listed = simnode("profile", "keys", cwd=tmp_path).stdout.splitlines()
    assert len(listed) > 300
    found = simnode("profile", "keys", "temp", "GPU", cwd=tmp_path).stdout.splitlines()
    assert [line.split(maxsplit=2) for line in found] == [
        ["gpu", "thermal.temperature_gpu_c", "an integer from 0 to 250 (C)"]
    ]
    assert simnode("profile", "keys", "num_devices", cwd=tmp_path).stdout == (
        "node  system.num_devices  an integer from 0 to 64\n"
    )
    assert simnode("profile", "keys", "fp8", cwd=tmp_path).stdout.endswith("  true or false; no effect yet\n")
    none = simnode("profile", "keys", "nonsense", cwd=tmp_path)
    assert (none.returncode, none.stdout, none.stderr) == (1, "", 'simnode: no key has "nonsense" in it\n')


def test_versions_of_another_driver_are_a_note_and_no_fault(tmp_path: Path) -> None:
    """A skew on purpose stays possible."""
    text = simnode("profile", "show", "t4", cwd=tmp_path).stdout
    (tmp_path / "mine.yaml").write_text(text.replace('driver_version: "595.91.07"', 'driver_version: "570.148.08"'))
    done = simnode("profile", "validate", "mine.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine.yaml: valid\n")
    assert "simnode: note: mine.yaml: versions not of driver 570.148.08: system.nvml_version (line " in done.stderr


def test_what_is_missing_is_told_beside_what_is_wrong(tmp_path: Path) -> None:
    """One round: a document without a version is looked through all the same."""
    (tmp_path / "mine.yaml").write_text(
        "system: {num_devices: two}\ndevice_defaults: {name: A, memory: 3, architecture: N/A}\n"
    )
    done = simnode("profile", "validate", "mine.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.removeprefix("simnode: mine.yaml:") for line in done.stderr.splitlines()] == [
        '1: system.num_devices: must be an integer from 0 to 64, not "two"',
        "1: version: is missing",
        "1: system.driver_version: is missing",
        "2: device_defaults.memory: must be a mapping, not 3",
        "2: device_defaults.architecture: must not be N/A: no device is without it",
        "2: device_defaults.pci.device_id: is missing",
    ]


def test_what_has_no_effect_is_a_note_and_no_fault(tmp_path: Path) -> None:
    """One line, with the places."""
    text = simnode("profile", "show", "t4", cwd=tmp_path).stdout
    (tmp_path / "mine.yaml").write_text(
        text.replace("device_defaults:\n", "device_defaults:\n  gpm: {supported: true}\n")
    )
    done = simnode("profile", "validate", "mine.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine.yaml: valid\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: note: mine.yaml: no effect yet: device_defaults.gpm.supported (line ")
