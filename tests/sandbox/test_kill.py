"""The node lives exactly as long as its init, and init no longer than the launcher; the agent is replaced."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from simnode.sandbox.installed import init_program
from tests.sandbox.running import Runner, until

INIT = init_program()
AGENT = f"{sys.executable} -P -m simnode.sandbox.agent "


def test_killed_launcher_takes_the_node_along(runner: Runner) -> None:
    """Nothing is left of a run that was killed (the runner's guard sees to the rest)."""
    run = runner.sleeping()
    run.kill()
    assert runner.vanished()


def test_killed_init_ends_the_run(runner: Runner) -> None:
    """The launcher says so in one line and exits as if its command had been killed."""
    run = runner.sleeping()
    os.kill(runner.one(INIT), signal.SIGKILL)
    _, err = run.communicate()
    assert run.returncode == 137
    assert err == "simnode: the node ended before the command did\n"


@pytest.mark.either_user
def test_killed_agent_is_replaced(runner: Runner) -> None:
    """The command goes on, and finds the node as it was, by the new agent's hand."""
    run = runner.sleeping()
    first = runner.one(AGENT)
    os.kill(first, signal.SIGKILL)
    assert runner.one(AGENT, other_than=first)
    assert run.poll() is None
    run.terminate()
    assert run.wait() == 143


@pytest.mark.either_user
def test_killed_command_leaves_nothing(runner: Runner) -> None:
    """Its end is the end of the node."""
    run = runner.sleeping()
    os.kill(runner.one("sleep 1000"), signal.SIGKILL)
    _, err = run.communicate()
    assert (run.returncode, err) == (137, "")


def test_signal_to_the_launcher_reaches_the_command(runner: Runner) -> None:
    """Whoever ends the launcher politely ends the command so; what the command survives leaves both as they were."""
    traps = "; ".join(f"trap 'echo {name}' {name}" for name in ("HUP", "INT", "USR1"))
    run = runner.start("run", "--", "sh", "-c", f"{traps}; echo running; while :; do sleep 1000 & wait; done")
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"
    for name in ("HUP", "INT", "USR1"):
        run.send_signal(signal.Signals[f"SIG{name}"])
        assert run.stdout.readline() == f"{name}\n"
    run.terminate()
    assert run.wait() == 143


@pytest.mark.either_user
def test_stopped_command_stops_the_launcher(runner: Runner) -> None:
    """Whoever waits for the launcher sees the stop, and continues both by continuing it."""
    run = runner.sleeping()
    os.kill(runner.one("sleep 1000"), signal.SIGSTOP)
    until(lambda: os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None)
    run.send_signal(signal.SIGCONT)
    run.terminate()
    assert run.wait() == 143
