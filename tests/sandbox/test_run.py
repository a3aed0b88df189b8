"""The command in the node: what it sees, what it may do, how it ends, and that nothing is left."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from simnode.sandbox.installed import init_program
from tests.sandbox.running import Runner, Shell
from tests.users import as_user

FORK = """
import json, os, sys
from simnode.sandbox.command import Command, exit_code
for words in json.loads(sys.argv[1]):
    print(exit_code(os.waitpid(Command(tuple(words), os.environ, "/").fork(), 0)[1]))
"""


def forked(runner: Runner, commands: Sequence[Sequence[str]], path: str = "/usr/bin:/bin") -> tuple[list[int], str]:
    """The exit codes of these as the launcher makes them of what it forks, and what was said."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", FORK, json.dumps(commands)],
        **as_user(runner.uid),
        env=runner.environ() | {"PATH": path},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return list(map(int, done.stdout.split())), done.stderr


@pytest.mark.either_user
@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param(["sh", "-c", "exit 3"], 3, id="its own code"),
        pytest.param(["sh", "-c", "kill -TERM $$"], 143, id="killed by SIGTERM"),
        pytest.param(["no-such-command"], 127, id="not found"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
    ],
)
def test_exit_code_is_a_shells(runner: Runner, command: list[str], code: int) -> None:
    """The launcher exits as a shell would have."""
    assert runner.run("run", "--", *command).returncode == code


def test_exit_code_of_what_cannot_be_executed_is_a_shells(runner: Runner) -> None:
    """Whatever the reason."""
    cases = {"no-such-command": 127, "/nonexistent/command": 127, "": 127, "/etc/passwd": 126, "/": 126}
    assert forked(runner, [[command] for command in cases])[0] == list(cases.values())


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
    path = f"{closed}:{program.parent}:/usr/bin:/bin"
    codes, said = forked(runner, [["program"]], path)
    closed.chmod(0o700)
    assert (codes, said) == ([code], f"simnode: program: {reason}\n")


def test_command_that_cannot_run_is_named_in_one_line(runner: Runner) -> None:
    """Not found is the user's fault and takes one line."""
    _, said = forked(runner, [["no-such-command"], [""]])
    assert said == "simnode: no-such-command: command not found\nsimnode: '': command not found\n"


def test_standard_places_serve_an_empty_environment(node: Shell) -> None:
    """Nothing has to be set to find the program, the library and the image."""
    done = node.do("/usr/bin/env -i /usr/bin/nvidia-smi -L")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 4


def test_devices_are_character_devices(node: Shell) -> None:
    """Real nodes as root, stand-ins otherwise; both stat as character devices, beside the machine's own."""
    done = node.do("test -c /dev/nvidia3 -a -c /dev/nvidiactl -a -c /dev/zero && ls /dev")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) >= {path.name for path in Path("/dev").iterdir()} | {
        "nvidia0",
        "nvidia3",
        "pts",
        "shm",
    }


def test_devices_of_root_are_its_own(node: Shell) -> None:
    """A chmod in the node must not reach the machine: same numbers, mode and owner, but another file."""
    if node.runner.uid != 0:
        pytest.skip("only root can make device nodes")
    lines = node.do("cd /dev; find . -mount \\( -type c -o -type b \\) -exec stat -c '%n %t:%T %a %u:%g %d' {} +")
    found = {name: said for name, *said in map(str.split, lines.stdout.splitlines())}
    machine = Path("/dev").stat().st_dev
    for directory, below, files in os.walk("/dev"):
        below[:] = [name for name in below if not Path(directory, name).is_mount()]
        for path in (Path(directory, name) for name in files):
            device = path.lstat()
            kind = device.st_mode
            if device.st_dev != machine or not (stat.S_ISCHR(kind) or stat.S_ISBLK(kind)):
                continue
            numbers = f"{os.major(device.st_rdev):x}:{os.minor(device.st_rdev):x}"
            rdev, mode, owner, place = found[f"./{path.relative_to('/dev')}"]
            assert (rdev, mode, owner) == (numbers, f"{kind & 0o7777:o}", f"{device.st_uid}:{device.st_gid}")
            assert int(place) != machine


def test_terminals_can_be_opened(node: Shell) -> None:
    """The multiplexer leads to the terminals of /dev/pts."""
    done = node.do(f"{sys.executable} -S -c 'import os; print(os.ttyname(os.openpty()[1]))'")
    assert done.stdout.startswith("/dev/pts/"), done.stderr


def test_driver_shows_in_proc(node: Shell) -> None:
    """/proc/driver/nvidia tells the driver's version."""
    assert "550.163.01" in node.do("cat /proc/driver/nvidia/version").stdout


def test_command_keeps_caller_and_directory(node: Shell) -> None:
    """uid, gid, working directory and environment are the caller's."""
    runner = node.runner
    done = node.do("id -u; id -g; pwd; echo $SIMNODE_MARK")
    assert done.stdout.split() == [str(runner.uid), str(runner.uid), str(runner.scratch), runner.mark]


def test_working_directory_is_seen_through_the_node(runner: Runner) -> None:
    """A launcher that stands in /usr/bin has its command stand in the node's /usr/bin."""
    assert runner.run("run", "--", "ls", "./nvidia-smi", cwd=Path("/usr/bin")).returncode == 0


def test_ordinary_command_has_no_capability(node: Shell) -> None:
    """None at all, unless the caller was root."""
    done = node.do("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status")
    sets = {line.split()[1] for line in done.stdout.splitlines()}
    assert (sets == {"0" * 16}) == (node.runner.uid != 0)


def test_root_option_shows_root(runner: Runner) -> None:
    """--root maps the caller to 0, and the files of the caller with it."""
    done = runner.run("run", "--root", "--", "sh", "-c", "id -u; stat -c %u .")
    assert done.stdout.split() == ["0", "0"]


def test_only_the_node_is_visible(node: Shell) -> None:
    """Processes of the machine do not show, init is pid 1."""
    done = node.do(f"tr '\\0' ' ' </proc/1/cmdline; test ! -e /proc/{os.getpid()}")
    assert done.returncode == 0
    assert "_native/init" in done.stdout


def test_daemon_left_behind_dies_with_the_node(runner: Runner) -> None:
    """The guard of the runner would see it live on."""
    done = runner.run("run", "--", "sh", "-c", "setsid sh -c 'sleep 1000' >/dev/null 2>&1 & sleep 0.1; exit 5")
    assert done.returncode == 5


def test_orphans_are_reaped(node: Shell) -> None:
    """init takes over what its parents left, also when it has ended: nothing of it stays in /proc."""
    orphan = node.do("(sleep 0.01 >/dev/null 2>&1 & echo $!)").stdout.strip()
    assert int(orphan)
    assert node.do(f"while test -e /proc/{orphan}; do sleep 0.01; done").returncode == 0


def test_default_signal_dispositions(node: Shell) -> None:
    """The interpreter's own are not handed down: what was blocked and ignored before is (SIGPIPE kills)."""
    asked = ("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    bare = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert node.do(shlex.join(asked)).stdout == bare.stdout


def test_descriptor_of_the_caller_is_the_commands_alone(runner: Runner, scratch: Path) -> None:
    """Neither init nor the agent keeps open what the caller opened, whatever its number."""
    opened = scratch / "opened"
    opened.touch(mode=0o644)
    opening = ("sh", "-c", 'exec 3<opened 6<opened 9<opened; exec "$@"', "-")
    run = runner.start("run", "--", "sh", "-c", "echo running; exec sleep 1000", under=opening)
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"

    def leads_there(descriptor: Path) -> bool:
        with suppress(FileNotFoundError):  # a program that just started opens and closes some
            return descriptor.readlink() == opened
        return False

    def holds(pid: int) -> list[str]:
        return sorted(file.name for file in Path(f"/proc/{pid}/fd").iterdir() if leads_there(file))

    assert holds(runner.one("sleep 1000")) == ["3", "6", "9"]
    assert [
        holds(runner.one(start)) for start in (init_program(), sys.executable + " -P -m simnode.sandbox.agent")
    ] == [[], []]
    run.terminate()
    assert run.wait() == 143


def test_no_descriptor_is_handed_down(node: Shell) -> None:
    """The command has the standard three, and the one with which it looks."""
    assert node.do("ls /proc/self/fd").stdout.split() == ["0", "1", "2", "3"]
