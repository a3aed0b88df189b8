"""A standing node lives exactly as long as its init; its agent is replaced and nothing of the node is lost."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.sandbox.running import Runner, until
from tests.standing.standing import AGENT, INIT, listed, refuse, succeed


def test_killed_agent_comes_back_and_nothing_is_lost(nodes: Runner) -> None:
    """Overrides, GPUs and driver are the changed ones, not those of the beginning."""
    succeed(nodes, "up", "--gpus", "4")
    succeed(nodes, "set", "system.num_devices=2", "system.driver_version=550.163.01")
    succeed(nodes, "set", "--gpu", "1", "thermal.temperature_gpu_c=91")
    first = nodes.one(AGENT)
    os.kill(first, signal.SIGKILL)
    nodes.one(AGENT, other_than=first)
    until(lambda: listed(nodes)["default"]["state"] == "ready")
    assert succeed(nodes, "get", "--gpu", "1", "thermal.temperature_gpu_c") == "91\n"
    assert listed(nodes)["default"]["driver_version"] == "550.163.01"
    table = succeed(nodes, "exec", "--", "nvidia-smi")
    assert table.count(" 91C ") == 1
    assert "550.163.01" in table
    succeed(nodes, "set", "system.num_devices=3")
    assert len(succeed(nodes, "exec", "--", "nvidia-smi", "-L").splitlines()) == 3


def test_agent_that_dies_again_and_again(nodes: Runner) -> None:
    """Each time another takes its place, the node serves on."""
    succeed(nodes, "up", "--gpus", "1")
    dead = 0
    for _ in range(3):
        dead = nodes.one(AGENT, other_than=dead)
        os.kill(dead, signal.SIGKILL)
        assert succeed(nodes, "exec", "--", "nvidia-smi", "-L").startswith("GPU 0: ")
    until(lambda: listed(nodes)["default"]["state"] == "ready")


def test_killed_init_takes_everything_along(nodes: Runner) -> None:
    """Agent, commands, daemons; the file goes as soon as anybody looks."""
    succeed(nodes, "up", "--gpus", "1")
    succeed(nodes, "exec", "--", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
    running = nodes.start("exec", "--", "sh", "-c", "echo running; exec sleep 1000")
    assert running.stdout is not None
    assert running.stdout.readline() == "running\n"
    os.kill(nodes.one(INIT), signal.SIGKILL)
    _, err = running.communicate()
    assert (running.returncode, err) == (137, "simnode: the node ended before the command did\n")
    assert nodes.vanished()
    assert (nodes.scratch / "simnode/default").exists()
    assert listed(nodes) == {}
    assert not (nodes.scratch / "simnode/default").exists()


def test_everything_killed_at_once(nodes: Runner) -> None:
    """No process, no mount (the runner's guard), and the name is free."""
    for name in ("one", "two"):
        succeed(nodes, "up", "--name", name, "--gpus", "1")
    for pid in nodes.processes():
        os.kill(pid, signal.SIGKILL)
    assert nodes.vanished()
    succeed(nodes, "up", "--name", "one", "--gpus", "2")
    assert list(listed(nodes)) == ["one"]


def test_down_takes_commands_along(nodes: Runner) -> None:
    """Also what exec left behind."""
    succeed(nodes, "up", "--gpus", "1")
    succeed(nodes, "exec", "--", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
    assert nodes.one("sleep 1000")
    succeed(nodes, "down")
    assert nodes.processes() == {}


@pytest.mark.parametrize("verb", ["up", "ls", "down", "exec"])
def test_stale_file_is_removed_by_whoever_meets_it(nodes: Runner, verb: str) -> None:
    """An unlocked file belongs to no node, whatever it says."""
    stale = _file(nodes, {"init": os.getpid(), "start": 1, "root": "/nowhere"})
    if verb == "up":
        succeed(nodes, "up", "--gpus", "1")
        assert json.loads(stale.read_text().splitlines()[0])["init"] != os.getpid()
    elif verb == "ls":
        assert listed(nodes) == {}
        assert not stale.exists()
    else:
        words = ("--", "true") if verb == "exec" else ()
        assert "no node default stands" in refuse(nodes, 1, verb, *words)
        assert not stale.exists()


def test_process_that_only_has_the_pid_is_left_alone(nodes: Runner) -> None:
    """The number of an init that ended may be another's by now: its start time tells."""
    other = subprocess.Popen(["sleep", "1000"], user=nodes.uid, group=nodes.uid)
    path = _file(nodes, {"init": other.pid, "start": 1, "root": "/usr/lib/simnode", "board": "h100", "since": 0})
    try:
        with path.open("a") as file:
            file.write("staged\n")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            assert "cannot be reached" in refuse(nodes, 1, "down")
            assert "cannot be reached" in refuse(nodes, 1, "exec", "--", "true")
            assert listed(nodes)["default"]["state"] == "out of reach"
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def _file(nodes: Runner, entry: dict[str, object]) -> Path:
    """The file of a node that never was."""
    place = nodes.scratch / "simnode"
    place.mkdir(mode=0o700)
    path = place / "default"
    path.write_text(json.dumps(entry) + "\n")
    for made in (place, path):
        os.chown(made, nodes.uid, nodes.uid)
    return path
