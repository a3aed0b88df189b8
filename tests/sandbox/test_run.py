"""The command in the node: what it sees, what it may do, how it ends, and that nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sandbox.running import Runner


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param(["true"], 0, id="success"),
        pytest.param(["sh", "-c", "exit 3"], 3, id="its own code"),
        pytest.param(["sh", "-c", "kill -TERM $$"], 143, id="killed by SIGTERM"),
        pytest.param(["sh", "-c", "kill -KILL $$"], 137, id="killed by SIGKILL"),
        pytest.param(["no-such-command"], 127, id="not found"),
        pytest.param(["/nonexistent/command"], 127, id="no such file"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
        pytest.param(["/"], 126, id="a directory"),
    ],
)
def test_exit_code_is_a_shells(runner: Runner, command: list[str], code: int) -> None:
    """The launcher exits as a shell would have."""
    assert runner.run("run", "--", *command).returncode == code


def test_command_that_cannot_run_is_named_in_one_line(runner: Runner) -> None:
    """Not found is the user's fault and takes one line."""
    assert runner.run("run", "--", "no-such-command").stderr == "simnode: no-such-command: command not found\n"


def test_standard_places_serve_an_empty_environment(runner: Runner) -> None:
    """Nothing has to be set to find the program, the library and the image."""
    done = runner.run("run", "--gpus", "2", "--", "/usr/bin/env", "-i", "/usr/bin/nvidia-smi", "-L")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_devices_are_character_devices(runner: Runner) -> None:
    """Real nodes as root, stand-ins otherwise; both stat as character devices, beside the machine's own."""
    done = runner.run(
        "run", "--gpus", "2", "--", "sh", "-c", "test -c /dev/nvidia1 -a -c /dev/nvidiactl -a -c /dev/zero && ls /dev"
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) >= {path.name for path in Path("/dev").iterdir()} | {
        "nvidia0",
        "nvidia1",
        "pts",
        "shm",
    }


def test_driver_shows_in_proc(runner: Runner) -> None:
    """/proc/driver/nvidia tells the driver's version, and /proc is the node's own."""
    done = runner.run(
        "run", "--driver-version", "550.163.01", "--", "sh", "-c", "cat /proc/driver/nvidia/version; ls /proc/1/root/"
    )
    assert "550.163.01" in done.stdout


def test_command_keeps_caller_and_directory(runner: Runner) -> None:
    """uid, gid, working directory and environment are the caller's."""
    done = runner.run("run", "--", "sh", "-c", "id -u; id -g; pwd; echo $SIMNODE_MARK")
    assert done.stdout.split() == [str(runner.uid), str(runner.uid), str(runner.scratch), runner.mark]


def test_working_directory_is_seen_through_the_node(runner: Runner) -> None:
    """A launcher that stands in /usr/bin has its command stand in the node's /usr/bin."""
    assert runner.run("run", "--", "ls", "./nvidia-smi", cwd=Path("/usr/bin")).returncode == 0


def test_ordinary_command_has_no_capability(runner: Runner) -> None:
    """None at all, unless the caller was root."""
    done = runner.run("run", "--", "grep", "-E", "Cap(Inh|Prm|Eff|Amb)", "/proc/self/status")
    sets = {line.split()[1] for line in done.stdout.splitlines()}
    assert (sets == {"0" * 16}) == (runner.uid != 0)


def test_root_option_shows_root(runner: Runner) -> None:
    """--root maps the caller to 0, and the files of the caller with it."""
    done = runner.run("run", "--root", "--", "sh", "-c", "id -u; stat -c %u .")
    assert done.stdout.split() == ["0", "0"]


def test_only_the_node_is_visible(runner: Runner) -> None:
    """Processes of the machine do not show, init is pid 1."""
    done = runner.run("run", "--", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; test ! -e /proc/%d" % os.getpid())
    assert "_native/init" in done.stdout


def test_daemon_left_behind_dies_with_the_node(runner: Runner) -> None:
    """The guard of the runner would see it live on."""
    done = runner.run("run", "--", "sh", "-c", "setsid sh -c 'sleep 1000' >/dev/null 2>&1 & sleep 0.1; exit 5")
    assert done.returncode == 5


def test_orphans_are_reaped(runner: Runner) -> None:
    """init takes over what its parents left."""
    script = "(sleep 0.05 & ); sleep 0.3; cat /proc/[0-9]*/stat | grep -c ' Z ' || true"
    assert runner.run("run", "--", "sh", "-c", script).stdout == "0\n"


def test_default_signal_dispositions(runner: Runner) -> None:
    """The interpreter's own are not handed down: nothing is blocked, SIGPIPE kills."""
    done = runner.run("run", "--", "grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    assert {line.split()[1] for line in done.stdout.splitlines()} == {"0" * 16}


def test_no_descriptor_is_handed_down(runner: Runner) -> None:
    """The command has the standard three, and the one with which it looks."""
    assert runner.run("run", "--", "ls", "/proc/self/fd").stdout.split() == ["0", "1", "2", "3"]
