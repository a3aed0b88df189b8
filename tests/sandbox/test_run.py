"""The command in the node: what it sees, what it may do, how it ends, and that nothing is left."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from simnode.sandbox.installed import init_program
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
        pytest.param([""], 127, id="empty"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
        pytest.param(["/"], 126, id="a directory"),
    ],
)
def test_exit_code_is_a_shells(runner: Runner, command: list[str], code: int) -> None:
    """The launcher exits as a shell would have."""
    assert runner.run("run", "--", *command).returncode == code


@pytest.mark.parametrize(
    ("found", "code", "reason"), [(False, 127, "command not found"), (True, 126, "Permission denied")]
)
def test_search_passes_over_what_it_may_not_enter(runner: Runner, found: bool, code: int, reason: str) -> None:
    """As a shell's does; only a file that was found and may not be executed is a matter of permission."""
    closed, program = runner.scratch / "closed", runner.scratch / "open/program"
    closed.mkdir(mode=0)
    program.parent.mkdir()
    if found:
        program.touch()
    done = runner.run("run", "--", "program", under=["env", f"PATH={closed}:{program.parent}:/usr/bin:/bin"])
    assert (done.returncode, done.stderr) == (code, f"simnode: program: {reason}\n")


def test_command_that_cannot_run_is_named_in_one_line(runner: Runner) -> None:
    """Not found is the user's fault and takes one line."""
    assert runner.run("run", "--", "no-such-command").stderr == "simnode: no-such-command: command not found\n"
    assert runner.run("run", "--", "").stderr == "simnode: '': command not found\n"


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
@pytest.mark.parametrize("uid", [0])
def test_devices_of_root_are_its_own(runner: Runner) -> None:
    """A chmod in the node must not reach the machine: same numbers, mode and owner, but another file."""
    script = "cd /dev; find . -mount \\( -type c -o -type b \\) -exec stat -c '%n %t:%T %a %u:%g %d' {} +"
    lines = runner.run("run", "--", "sh", "-c", script).stdout.splitlines()
    found = {name: said for name, *said in map(str.split, lines)}
    machine = Path("/dev").stat().st_dev
    for path in Path("/dev").rglob("*"):
        node = path.lstat()
        if path.is_mount() or node.st_dev != machine or not (stat.S_ISCHR(node.st_mode) or stat.S_ISBLK(node.st_mode)):
            continue
        numbers = f"{os.major(node.st_rdev):x}:{os.minor(node.st_rdev):x}"
        rdev, mode, owner, device = found[f"./{path.relative_to('/dev')}"]
        assert (rdev, mode, owner) == (numbers, f"{node.st_mode & 0o7777:o}", f"{node.st_uid}:{node.st_gid}")
        assert int(device) != machine


def test_terminals_can_be_opened(runner: Runner) -> None:
    """The multiplexer leads to the terminals of /dev/pts."""
    done = runner.run("run", "--", sys.executable, "-c", "import os; print(os.ttyname(os.openpty()[1]))")
    assert done.stdout.startswith("/dev/pts/"), done.stderr


def test_driver_shows_in_proc(runner: Runner) -> None:
    """/proc/driver/nvidia tells the driver's version."""
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
    done = runner.run("run", "--", "sh", "-c", f"tr '\\0' ' ' </proc/1/cmdline; test ! -e /proc/{os.getpid()}")
    assert done.returncode == 0
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
    """The interpreter's own are not handed down: what was blocked and ignored before is (SIGPIPE kills)."""
    asked = ("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    bare = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert runner.run("run", "--", *asked).stdout == bare.stdout


def test_descriptor_of_the_caller_is_the_commands_alone(runner: Runner, scratch: Path) -> None:
    """Neither init nor the agent keeps open what the caller opened, whatever its number."""
    opened = scratch / "opened"
    opened.touch(mode=0o644)
    opening = ("sh", "-c", 'exec 3<opened 6<opened 9<opened; exec "$@"', "-")
    run = runner.start("run", "--", "sh", "-c", "echo running; exec sleep 1000", under=opening)
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"

    def holds(pid: int) -> list[str]:
        return sorted(file.name for file in Path(f"/proc/{pid}/fd").iterdir() if file.readlink() == opened)

    assert holds(runner.one("sleep 1000")) == ["3", "6", "9"]
    assert [
        holds(runner.one(start)) for start in (init_program(), sys.executable + " -P -m simnode.sandbox.agent")
    ] == [[], []]
    run.terminate()
    assert run.wait() == 143


def test_no_descriptor_is_handed_down(runner: Runner) -> None:
    """The command has the standard three, and the one with which it looks."""
    assert runner.run("run", "--", "ls", "/proc/self/fd").stdout.split() == ["0", "1", "2", "3"]
