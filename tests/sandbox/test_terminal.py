"""Job control: a command in a node is one job of the shell that started it, and a shell inside has jobs of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.running import SIMNODE, Runner
from tests.sandbox.terminal import CTRL_C, CTRL_Z, Terminal

RUN = " ".join(SIMNODE) + " run -- "
EXEC = " ".join(SIMNODE) + " exec -- "
SHELL = "env PS1='inner> ' bash --norc --noprofile -i\n"

pytestmark = pytest.mark.either_user
either_way = pytest.mark.parametrize("way", [RUN, EXEC], ids=["run", "exec"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, runner: Runner) -> Iterator[str]:
    """What stands before the command: into a node of its own, or where a test says so into one that stands."""
    chosen: str = getattr(request, "param", RUN)
    if chosen == EXEC:
        assert runner.run("up", "--gpus", "1").returncode == 0
    yield chosen
    if chosen == EXEC:
        assert runner.run("down").returncode == 0


@pytest.fixture
def terminal(runner: Runner, way: str) -> Iterator[Terminal]:  # noqa: ARG001  the node comes first
    """A terminal whose shell is ready."""
    with Terminal(runner.uid, runner.environ(), runner.scratch) as terminal:
        terminal.expect("outer> $")
        yield terminal


def test_interrupt_ends_the_command(terminal: Terminal) -> None:
    """^C reaches the command; the shell sees its code and has the terminal."""
    terminal.write(RUN + "sh -c 'echo here we are; exec sleep 1000'\n")
    terminal.expect("\nhere we are")
    terminal.write(CTRL_C)
    terminal.expect("outer> $")
    terminal.write("echo code=$?\n")
    terminal.expect("\ncode=130")


@either_way
def test_suspended_command_is_a_job(terminal: Terminal, way: str) -> None:
    """^Z stops it, fg brings it back, the command then reads from the terminal."""
    terminal.write(way + "sh -c 'echo here we are; read word; echo got $word'\n")
    terminal.expect("\nhere we are")
    terminal.write(CTRL_Z)
    terminal.expect("Stopped")
    terminal.expect("outer> $")
    terminal.write("fg\n")
    terminal.expect("read word")
    terminal.write("something\n")
    terminal.expect("\ngot something")
    terminal.expect("outer> $")


def test_background_run_leaves_the_terminal_alone(terminal: Terminal) -> None:
    """A run that was started with & ends without taking the terminal from what is in the foreground."""
    terminal.write(RUN + "sleep 0.2 & cat; echo after\n")
    terminal.expect(r"\[1\] \d+")
    terminal.write("one\n")
    terminal.expect("\none\r\n")
    terminal.write("two\n\x04")
    terminal.expect("\nafter")
    terminal.write("wait; echo code=$?\n")
    terminal.expect("\ncode=0")


@either_way
def test_shell_inside_controls_its_jobs(terminal: Terminal, way: str) -> None:
    """^C, ^Z, fg inside; after exit the outer shell has the terminal and the code."""
    terminal.write(way + SHELL)
    assert "job control" not in terminal.expect(r"(?s)bash.*?inner> $")
    terminal.write("tty\n")
    terminal.expect("\n/dev/pts/")
    terminal.expect("inner> $")
    terminal.write("sh -c 'echo here we are; read word; echo got $word; exec sleep 1000'\n")
    terminal.expect("\nhere we are")
    terminal.write(CTRL_Z)
    terminal.expect("Stopped")
    terminal.expect("inner> $")
    terminal.write("fg\n")
    terminal.expect("read word")
    terminal.write("something\n")
    terminal.expect("\ngot something")
    terminal.write(CTRL_C)
    terminal.expect("inner> $")
    terminal.write("exit 7\n")
    terminal.expect("outer> $")
    terminal.write("echo code=$?\n")
    terminal.expect("\ncode=7")
    terminal.write("sh -c 'echo now in''side; exec cat'\n")
    terminal.expect("\nnow inside")
    terminal.write("a line\n")
    terminal.expect("\na line\r\na line")
    terminal.write(CTRL_C)
    terminal.expect("outer> $")


def test_shell_inside_can_be_suspended(terminal: Terminal) -> None:
    """`suspend` in the inner shell gives the terminal to the outer one, fg gives it back."""
    terminal.write(RUN + SHELL)
    terminal.expect("inner> $")
    terminal.write("suspend\n")
    terminal.expect("Stopped")
    terminal.expect("outer> $")
    terminal.write("fg\n")
    terminal.write("echo in=$SIMNODE_MARK\n")
    terminal.expect("\nin=[0-9a-f]{32}")
    terminal.expect("inner> $")
    terminal.write("exit 0\n")
    terminal.expect("outer> $")
