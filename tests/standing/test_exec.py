"""A command in a standing node sees it and nothing else. That it is the caller's job: tests/sandbox/test_terminal."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.running import Runner, until
from tests.standing.standing import standing, succeed


@pytest.fixture(scope="module")
def node(sharing: Runner) -> Iterator[Runner]:
    """A node of one GPU stands."""
    with standing(sharing, "--gpus", "1") as node:
        yield node


def test_exit_code_is_a_shells(node: Runner) -> None:
    """Its own, or what a shell says of one that could not run or was killed."""
    cases = (
        (["true"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["no-such-command"], 127),
        (["/etc/passwd"], 126),
    )
    assert [node.run("exec", "--", *command).returncode for command, _ in cases] == [code for _, code in cases]


def test_command_keeps_caller_and_directory(node: Runner) -> None:
    """uid, gid, working directory and environment are the caller's, standard input and output too."""
    done = node.run(
        "exec", "--", "sh", "-c", "id -u; id -g; pwd; echo $SIMNODE_MARK; ls /proc/self/fd", cwd=node.scratch
    )
    uid, gid, directory, mark, *descriptors = done.stdout.split()
    assert (uid, gid, directory, mark) == (str(node.uid), str(node.uid), str(node.scratch), node.mark)
    assert descriptors == ["0", "1", "2", "3"]


def test_ordinary_command_has_no_capability(node: Runner) -> None:
    """None at all, unless the caller was root."""
    done = node.run("exec", "--", "grep", "-E", "Cap(Inh|Prm|Eff|Amb)", "/proc/self/status")
    fields = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert fields["CapAmb"] == "0" * 16
    assert (fields["CapEff"] == "0" * 16) == (node.uid != 0)


def test_signal_dispositions_are_the_callers(node: Runner) -> None:
    """The interpreter's own are not handed down."""
    asked = ("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    assert (
        succeed(node, "exec", "--", *asked) == subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    )


def test_root_option_shows_root(node: Runner) -> None:
    """--root maps the caller to 0, and the files of the caller with it."""
    assert succeed(node, "exec", "--root", "--", "sh", "-c", "id -u; stat -c %u .").split() == ["0", "0"]


def test_only_the_node_is_visible(node: Runner) -> None:
    """Processes of the machine do not show, init is pid 1."""
    words = ("exec", "--", "sh", "-c", f"tr '\\0' ' ' </proc/1/cmdline; test ! -e /proc/{os.getpid()}")
    assert "_native/init" in succeed(node, *words)


def test_what_a_command_leaves_behind_lives_on(node: Runner) -> None:
    """It belongs to the node, and the next command sees it."""
    succeed(node, "exec", "--", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
    shown = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    assert "sleep 1000" in until(lambda: succeed(node, "exec", "--", "sh", "-c", shown))


def test_signal_reaches_the_command(node: Runner) -> None:
    """Whoever ends `exec` politely ends the command so."""
    traps = "; ".join(f"trap 'echo {name}' {name}" for name in ("HUP", "INT"))
    run = node.start("exec", "--", "sh", "-c", f"{traps}; echo running; while :; do sleep 1000 & wait; done")
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"
    for name in ("HUP", "INT"):
        run.send_signal(signal.Signals[f"SIG{name}"])
        assert run.stdout.readline() == f"{name}\n"
    run.terminate()
    assert run.wait() == 143


def test_commands_at_once(node: Runner) -> None:
    """They do not get into each other's way."""
    runs = [node.start("exec", "--", "sh", "-c", f"nvidia-smi -L >/dev/null; exit {n}") for n in range(4)]
    assert [run.wait() for run in runs] == [0, 1, 2, 3]


def test_directory_is_seen_through_the_node(node: Runner) -> None:
    """Who stands in /usr/bin has the command stand in the node's."""
    assert node.run("exec", "--", "ls", "./nvidia-smi", cwd=Path("/usr/bin")).returncode == 0
