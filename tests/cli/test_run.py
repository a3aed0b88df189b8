"""`simnode run`: what the user got wrong, each in one line and exit 2, before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SIMNODE = (sys.executable, "-P", "-m", "simnode")


def simnode(*words: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """`simnode WORDS` with an environment that sets nothing but this."""
    environ = {"PATH": os.defpath, **environ}
    return subprocess.run(
        [*SIMNODE, *words], cwd=cwd, env=environ, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--board", "h10", "--", "true"], 'did you mean "h100"', id="unknown board"),
        pytest.param(["--gpus", "-1", "--", "true"], "-1", id="negative number of GPUs"),
        pytest.param(["--gpus", "٣", "--", "true"], "٣", id="digits of another script"),
        pytest.param(["--gpus", "1_0", "--", "true"], "1_0", id="digits with an underscore"),
        pytest.param(["--gpus", " 3", "--", "true"], " 3", id="digits with a space"),
        pytest.param(["--board", "", "--", "true"], "--board", id="empty board"),
        pytest.param(["--driver-version", "", "--", "true"], "--driver-version", id="empty driver version"),
        pytest.param(["--set", "name=", "--", "true"], "--set: name", id="name taken away"),
        pytest.param(["--set", "name=N/A", "--", "true"], "--set: name: must not be N/A", id="name refused"),
        pytest.param(["--set", "temp=9", "--", "true"], 'did you mean "thermal.temp', id="key without its group"),
        pytest.param(["--set", "system.num_devices=2", "--", "true"], "the node's own value", id="key of the node"),
        pytest.param(["--gpus", "many", "--", "true"], "many", id="not a number of GPUs"),
        pytest.param(["--gpus", "65", "--", "true"], "64", id="more GPUs than the image has room for"),
        pytest.param(["--driver-version", "../../x", "--", "true"], "../../x", id="driver version is a path"),
        pytest.param(["--set", "thermal.temperature_gpu=91", "--", "true"], "temperature_gpu_c", id="unknown key"),
        pytest.param(["--set", "thermal", "--", "true"], "thermal", id="no value"),
        pytest.param(["--bord", "h100", "--", "true"], "--board", id="unknown option"),
        pytest.param(["--board", "h100"], "CMD is missing: say what to run, such as `simnode run -- ", id="no command"),
        pytest.param(["--board", "h100", "--profile", "x.yaml", "--", "true"], "exclude", id="board and profile"),
        pytest.param(["--profile", "missing.yaml", "--", "true"], "missing.yaml", id="no such profile"),
        pytest.param(["--profile", "/", "--", "true"], "directory", id="profile is a directory"),
        pytest.param(["--nvidia-smi", "missing", "--", "true"], "missing", id="no such nvidia-smi"),
        pytest.param(["--nvidia-smi", "/etc/passwd", "--", "true"], "executed", id="nvidia-smi is no program"),
    ],
)
def test_usage_fault_is_one_line_and_exit_2(tmp_path: Path, words: list[str], said: str) -> None:
    """The line is ours, names the culprit, and nothing else is printed."""
    done = simnode("run", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: ")
    assert said in line


def test_all_faults_of_a_document_at_once(tmp_path: Path) -> None:
    """One line each, with file and line."""
    (tmp_path / "p.yaml").write_text("sytem: {}\ndevice_defaults:\n  nmae: x\n")
    done = simnode("run", "--profile", "p.yaml", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) >= 2
    assert all(line.startswith("simnode: p.yaml:") for line in done.stderr.splitlines())


def test_options_end_at_the_command(tmp_path: Path) -> None:
    """What follows the first word belongs to the command, with or without a dash before it."""
    assert simnode("run", "sh", "-c", "exit 4", "--gpus", "-1", cwd=tmp_path).returncode == 4
    assert simnode("run", "--gpus", "1", "--", "sh", "-c", "exit 5", cwd=tmp_path).returncode == 5


def test_number_of_gpus(tmp_path: Path) -> None:
    """The option beats the board."""
    done = simnode("run", "--gpus", "3", "--", "nvidia-smi", "-L", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 3, done.stderr


@pytest.mark.parametrize(
    ("words", "environ", "gpus"),
    [
        pytest.param([], {"SIMNODE_GPUS": "3"}, 3, id="environment beats the board"),
        pytest.param([], {"SIMNODE_GPUS": "3", "GPU_COUNT": "2"}, 3, id="SIMNODE_GPUS beats GPU_COUNT"),
        pytest.param(["--gpus", "1"], {"SIMNODE_GPUS": "3", "GPU_COUNT": "2"}, 1, id="option beats environment"),
        pytest.param([], {"GPU_COUNT": "2"}, 2, id="GPU_COUNT beats the board"),
        pytest.param(["--board", "h100", "--gpus", "1"], {"SIMNODE_PROFILE": "no.yaml"}, 1, id="board beats profile"),
        pytest.param([], {"SIMNODE_BOARD": "h100", "SIMNODE_GPUS": ""}, 8, id="an empty variable says nothing"),
    ],
)
def test_option_beats_environment_beats_profile(
    tmp_path: Path, words: list[str], environ: dict[str, str], gpus: int
) -> None:
    """As for the agent."""
    done = simnode("run", *words, "--", "nvidia-smi", "-L", cwd=tmp_path, **environ)
    assert len(done.stdout.splitlines()) == gpus, done.stderr


def test_every_option_of_a_node_can_be_a_variable(tmp_path: Path) -> None:
    """Profile, driver and program; the board and the number of GPUs are above."""
    (tmp_path / "mine.yaml").write_text(simnode("profile", "show", "h100", cwd=tmp_path).stdout)
    (tmp_path / "mine").write_text("#!/bin/sh\ncat /proc/driver/nvidia/version\n")
    (tmp_path / "mine").chmod(0o755)
    environ = {
        "SIMNODE_PROFILE": "mine.yaml",
        "SIMNODE_DRIVER_VERSION": "550.163.01",
        "SIMNODE_NVIDIA_SMI": "mine",
        "DRIVER_VERSION": "535.104.05",
    }
    assert " 550.163.01 " in simnode("run", "--", "nvidia-smi", cwd=tmp_path, **environ).stdout


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SIMNODE_BOARD", "h10", 'environment: SIMNODE_BOARD: "h10" is no known board; did you mean "h100"?'),
        ("SIMNODE_GPUS", "many", "environment: SIMNODE_GPUS: 'many' is no number of GPUs, such as 8"),
        ("SIMNODE_GPUS", "65", "environment: SIMNODE_GPUS: must be a number of GPUs from 0 to 64, not 65"),
        (
            "SIMNODE_DRIVER_VERSION",
            "x",
            "environment: SIMNODE_DRIVER_VERSION: must be a driver version such as 550.163.01, not ",
        ),
        (
            "SIMNODE_NVIDIA_SMI",
            "missing",
            "environment: SIMNODE_NVIDIA_SMI: missing is not a file that can be read and executed",
        ),
        ("GPU_COUNT", "two", 'environment: GPU_COUNT: must be a number of GPUs from 0 to 64, not "two"'),
        ("SIMNODE_PROFILE", "missing.yaml", "missing.yaml: no such file"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said_of_its_variable(
    tmp_path: Path, variable: str, value: str, said: str
) -> None:
    done = simnode("run", "--", "true", cwd=tmp_path, **{variable: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"simnode: {said}")
    assert done.stderr.count("\n") == 1


def test_board_and_profile_exclude_each_other_in_the_environment_too(tmp_path: Path) -> None:
    done = simnode("run", "--", "true", cwd=tmp_path, SIMNODE_BOARD="h100", SIMNODE_PROFILE="mine.yaml")
    assert (
        done.stderr == "simnode: environment: SIMNODE_BOARD and SIMNODE_PROFILE exclude each other: give one of them\n"
    )


def test_what_is_set_without_effect_is_said_and_the_command_runs(tmp_path: Path) -> None:
    done = simnode("run", "--set", "gpm.supported=true", "--", "echo", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == "simnode: note: --set: no effect yet: gpm.supported\n"


def test_versions_of_another_driver_are_said_unless_an_option_brings_its_own(tmp_path: Path) -> None:
    shown = simnode("profile", "show", "h100", cwd=tmp_path).stdout
    (tmp_path / "mine.yaml").write_text(shown.replace('driver_version: "580.105.08"', 'driver_version: "570.148.08"'))
    done = simnode("run", "--profile", "mine.yaml", "--gpus", "1", "--", "echo", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    said = "simnode: note: mine.yaml: versions not of driver 570.148.08: system.nvml_version (line 8) should be "
    assert done.stderr.startswith(said)
    brought = ("--driver-version", "550.163.01")
    done = simnode("run", "--profile", "mine.yaml", "--gpus", "1", *brought, "--", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_that_the_command_is_asked_for_is_the_commands(tmp_path: Path) -> None:
    for words in (["sh", "-c", 'echo "$1"', "sh", "-h"], ["--", "echo", "-h"]):
        assert simnode("run", *words, cwd=tmp_path).stdout == "-h\n"


def test_own_nvidia_smi(tmp_path: Path) -> None:
    """--nvidia-smi stages another program; the path is the caller's."""
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    assert simnode("run", "--nvidia-smi", "mine", "--", "nvidia-smi", cwd=tmp_path).stdout == "mine\n"


def test_huge_nvidia_smi_is_refused(tmp_path: Path) -> None:
    """It would lie in memory several times; no nvidia-smi is a tenth as large."""
    program = tmp_path / "huge"
    program.touch(mode=0o755)
    os.truncate(program, (64 << 20) + 1)
    done = simnode("run", "--nvidia-smi", "huge", "--", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "simnode: --nvidia-smi: huge is larger than 64 MiB\n")


def test_profile_of_ones_own(tmp_path: Path) -> None:
    """What `profile show` prints is a profile, and --set changes it."""
    shown = simnode("profile", "show", "h100", cwd=tmp_path)
    (tmp_path / "mine.yaml").write_text(shown.stdout)
    words = ("run", "--profile", "mine.yaml", "--gpus", "1", "--set", "thermal.temperature_gpu_c=91")
    done = simnode(*words, "--", "nvidia-smi", cwd=tmp_path)
    assert " 91C " in done.stdout, done.stderr
