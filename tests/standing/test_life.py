"""A node that stays: how it comes up, is listed, and goes; that a name is one node's; that nothing is left."""

from __future__ import annotations

import fcntl
import os
import random
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from simnode.sandbox.standing import BadName, check_name
from tests.sandbox.running import SIMNODE, Runner
from tests.standing.standing import INIT, listed, refuse, succeed
from tests.users import as_user


@dataclass(frozen=True)
class Up:
    """A node `one` of three GPUs that a module's tests share: what `up` printed, and when it began."""

    runner: Runner
    said: str
    began: float


@pytest.fixture(scope="module")
def one(sharing: Runner) -> Iterator[Up]:
    """Brought up, and taken down in the end."""
    began = time.time()
    said = succeed(sharing, "up", "--name", "one", "--gpus", "3", "--driver-version", "550.163.01")
    yield Up(sharing, said, began)
    succeed(sharing, "down", "--name", "one")


def test_node_stands_when_up_returns(one: Up) -> None:
    """`up` says nothing, holds nothing of the caller's open (the pipes of this test), and the node serves."""
    assert one.said == ""
    look = ("env", "-i", "/usr/bin/nvidia-smi", "-L")
    assert len(succeed(one.runner, "exec", "--name", "one", "--", *look).splitlines()) == 3


def test_list_says_what_stands(one: Up) -> None:
    """Name, board, GPUs, driver, since, state."""
    node = listed(one.runner)["one"]
    assert (node["board"], node["gpus"], node["driver_version"], node["state"]) == ("h100", 3, "550.163.01", "ready")
    assert one.began < node["since"] < time.time()
    titles, line = succeed(one.runner, "ls").splitlines()
    assert titles.split() == ["NAME", "BOARD", "GPUS", "DRIVER", "SINCE", "STATE"]
    assert line.split()[:4] == ["one", "h100", "3", "550.163.01"]


def test_three_nodes_side_by_side(nodes: Runner) -> None:
    """Each is its own; taking one down leaves the others."""
    for name, gpus in (("one", "1"), ("two", "2"), ("three", "3")):
        succeed(nodes, "up", "--name", name, "--gpus", gpus)
    succeed(nodes, "set", "--name", "two", "--gpu", "all", "thermal.temperature_gpu_c=91")
    for name, count in (("one", 1), ("three", 3)):
        assert len(succeed(nodes, "exec", "--name", name, "--", "nvidia-smi", "-L").splitlines()) == count
        assert succeed(nodes, "get", "--name", name, "--gpu", "0", "thermal.temperature_gpu_c") != "91\n"
    succeed(nodes, "down", "--name", "two")
    assert set(listed(nodes)) == {"one", "three"}


def test_name_is_one_nodes(one: Up) -> None:
    """A second one of a name is refused in one line, and the first is none the worse."""
    assert "one stands already" in refuse(one.runner, 1, "up", "--name", "one", "--gpus", "4")
    assert listed(one.runner)["one"]["gpus"] == 3


def test_foreign_things_among_the_nodes_disturb_nobody(nodes: Runner) -> None:
    """Listed is what may be a node; nothing else of them is touched, and no command stumbles."""
    above = nodes.scratch / "simnode"
    above.mkdir(mode=0o700)
    (above / "directory").mkdir()
    (above / "link").symlink_to("/etc/passwd")
    os.mkfifo(above / "fifo")
    for number, text in enumerate(("[1]", '{"init": "x", "since": null}', '{"init": 1e999, "start": []}', "{")):
        (above / f"odd{number}").write_text(f"{text}\n")
    if os.geteuid() == 0:
        for path in (above, *above.iterdir()):
            os.chown(path, nodes.uid, nodes.uid, follow_symlinks=False)
    with ExitStack() as locked:
        for odd in above.glob("odd*"):
            fcntl.flock(locked.enter_context(odd.open()), fcntl.LOCK_EX)
        for line in succeed(nodes, "ls").splitlines()[1:]:
            assert line.split()[1:] == [*["-"] * 4, "coming", "up"]
        assert "cannot be reached" in refuse(nodes, 1, "down", "--name", "odd0")
        assert "is no node's file" in refuse(nodes, 1, "status", "--name", "fifo")
    succeed(nodes, "ls")
    assert {path.name for path in above.iterdir()} == {"directory", "link", "fifo"}
    shutil.rmtree(above)


def test_where_nothing_can_be_written_no_node_comes_up(nodes: Runner) -> None:
    """One line that names the place, and nothing is left."""
    done = nodes.run("up", under=["prlimit", "--fsize=0"])
    assert (done.returncode, done.stderr) == (1, f"simnode: {nodes.scratch}/simnode/default: File too large\n")
    assert not (nodes.scratch / "simnode").exists()


def test_name_is_free_again_after_down(nodes: Runner) -> None:
    """`down` returns when the node is gone."""
    for gpus in (1, 2):
        succeed(nodes, "up", "--gpus", str(gpus))
        assert listed(nodes)["default"]["gpus"] == gpus
        succeed(nodes, "down")
        assert nodes.processes() == {}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", ".hidden", "ä", "a b", "x" * 65, "a\nb"])
def test_name_that_no_node_can_have(name: str) -> None:
    """Refused before it becomes a path."""
    with pytest.raises(BadName, match="is no name for a node"):
        check_name(name)


@pytest.mark.parametrize("words", [("up",), ("exec", "true"), ("down",), ("get",)], ids=lambda words: words[0])
def test_bad_name_is_a_usage_fault(nodes: Runner, words: tuple[str, ...]) -> None:
    """In one line, whatever it was to be used for."""
    verb, *rest = words
    assert '"../x" is no name for a node' in refuse(nodes, 2, verb, "--name=../x", *rest)


@pytest.mark.parametrize(
    "words", [("exec", "true"), ("down",), ("status",), ("set", "a=1")], ids=lambda words: words[0]
)
def test_node_that_does_not_stand(nodes: Runner, words: tuple[str, ...]) -> None:
    """One line, exit 1."""
    verb, *rest = words
    assert "no node nowhere stands" in refuse(nodes, 1, verb, "--name", "nowhere", *rest)


def test_bad_document_brings_nothing_up(nodes: Runner) -> None:
    """As with `run`: exit 2 and one line a fault."""
    assert "did you mean" in refuse(nodes, 2, "up", "--board", "h10")
    assert listed(nodes) == {}


def test_node_that_cannot_be_staged(nodes: Runner) -> None:
    """The first wave hits a limit on the size of files: one line, exit 1, nothing left, and the name is free."""
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 300; {shlex.join(SIMNODE)} up"],
        **as_user(nodes.uid),
        env=nodes.environ(),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "File too large" in line
    assert nodes.processes() == {}
    assert not (nodes.scratch / "simnode").exists()


def test_refused_namespaces(refused: Runner) -> None:
    """There is nothing to fall back to for a node that stays: one line, exit 1, nothing left."""
    assert "a node cannot stay where namespaces are refused" in refuse(refused, 1, "up")
    assert not (refused.scratch / "simnode").exists()


def test_killed_up_leaves_a_whole_node_or_none(nodes: Runner) -> None:
    """Whenever it was killed."""
    for delay in (random.Random(7).uniform(0, 0.6) for _ in range(8)):
        process = nodes.start("up", "--gpus", "1")
        time.sleep(delay)
        process.kill()
        process.wait()
        if "default" in listed(nodes):
            assert succeed(nodes, "exec", "--", "nvidia-smi", "-L").startswith("GPU 0: ")
            succeed(nodes, "down")
        assert nodes.vanished()
        assert list((nodes.scratch / "simnode").glob("*")) == []


def test_two_at_once_for_one_name(nodes: Runner) -> None:
    """Exactly one gets it."""
    racing = [nodes.start("up", "--gpus", "1") for _ in range(3)]
    assert sorted(process.wait() for process in racing) == [0, 1, 1]
    assert listed(nodes)["default"]["state"] == "ready"


def test_node_has_a_session_of_its_own(one: Up) -> None:
    """Closing the terminal that it was started from does not reach it."""
    init = one.runner.one(INIT)
    fields = Path(f"/proc/{init}/stat").read_text().rpartition(")")[2].split()
    assert (int(fields[3]), fields[4]) == (init, "0")


def test_place_of_somebody_else_is_refused(nodes: Runner) -> None:
    """A directory that others may write to is not ours."""
    place = nodes.scratch / "simnode"
    place.mkdir()
    place.chmod(0o777)
    try:
        assert "mode 0700" in refuse(nodes, 1, "up")
        assert "mode 0700" in refuse(nodes, 1, "ls")
    finally:
        place.rmdir()
