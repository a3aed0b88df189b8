"""The commands that talk to a node: by its name, or from inside; cheap, and in the owner's name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from simnode.cli.control import VERBS, talk
from tests.sandbox.running import SIMNODE, Runner
from tests.standing.standing import listed, refuse, standing, succeed
from tests.users import as_user

SIMNODE_WORDS = shlex.join(SIMNODE)


@pytest.fixture(scope="module")
def shared(sharing: Runner) -> Iterator[Runner]:
    """A node of two GPUs stands."""
    with standing(sharing, "--gpus", "2") as node:
        yield node


@pytest.fixture
def node(shared: Runner) -> Runner:
    """It stands as it was brought up."""
    succeed(shared, "reset")
    return shared


def test_set_get_reset(node: Runner) -> None:
    """What was set is what is got and what programs read, until it is reset."""
    before = succeed(node, "get", "--gpu", "1", "thermal.temperature_gpu_c")
    succeed(node, "set", "--gpu", "1", "thermal.temperature_gpu_c=91", "utilization.gpu=50")
    assert succeed(node, "get", "--gpu", "1", "thermal.temperature_gpu_c") == "91\n"
    assert succeed(node, "get", "utilization.gpu").splitlines()[1] == "1:utilization.gpu=50"
    assert succeed(node, "exec", "--", "nvidia-smi").count(" 91C ") == 1
    succeed(node, "reset", "--gpu", "1", "thermal.temperature_gpu_c")
    assert succeed(node, "get", "--gpu", "1", "thermal.temperature_gpu_c") == before
    assert succeed(node, "get", "--gpu", "1", "utilization.gpu") == "50\n"
    succeed(node, "reset")
    assert succeed(node, "get", "--gpu", "1", "utilization.gpu") != "50\n"


def test_options_may_stand_anywhere(node: Runner) -> None:
    """Between the values and after them."""
    succeed(node, "set", "thermal.temperature_gpu_c=80", "--gpu", "0", "utilization.gpu=7", "--name", "default")
    assert succeed(node, "get", "utilization.gpu", "--gpu", "0") == "7\n"


def test_faults(node: Runner) -> None:
    """Injected, listed, seen by status, cleared."""
    succeed(node, "fault", "inject", "--gpu", "1", "fallen_off_bus")
    assert succeed(node, "fault", "list").rstrip().endswith("fallen_off_bus, XID 79")
    assert "fallen_off_bus" in succeed(node, "status").splitlines()[-1]
    succeed(node, "fault", "clear")
    assert succeed(node, "fault", "list", "--json") == "[]\n"


def test_kernel_modules_of_another_driver(node: Runner) -> None:
    """The node's own fault: injected, listed, seen by status and by NVML, cleared with all others."""
    succeed(node, "fault", "inject", "version-skew", "--kernel-version", "535.261.03")
    assert succeed(node, "fault", "list").startswith("node: version-skew, kernel modules 535.261.03, libraries 5")
    assert succeed(node, "status").splitlines()[1].endswith(", kernel modules 535.261.03")
    refused = node.run("exec", "--", "nvidia-smi", "-L")
    assert (refused.returncode, refused.stdout.splitlines()[0]) == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch",
    )
    succeed(node, "fault", "clear")
    assert succeed(node, "fault", "list", "--json") == "[]\n"
    assert succeed(node, "exec", "--", "nvidia-smi", "-L")


def test_status(node: Runner) -> None:
    """What the node is, how it does, and what its agent complained of."""
    status = json.loads(succeed(node, "status", "--json"))
    assert (status["name"], status["board"], len(status["gpus"]), status["log"]) == ("default", "h100", 2, [])
    assert [probe["ok"] for probe in status["health"].values()] == [True, True, True]
    assert succeed(node, "status").startswith("node default: h100, ")


def test_what_the_agent_refuses_is_one_line_and_exit_2(node: Runner) -> None:
    """Its faults look like the command line's own."""
    cases = (
        (["set", "--gpu", "1", "thermal.temperature_gpu=91"], "temperature_gpu_c"),
        (["set", "--gpu", "9", "utilization.gpu=1"], "no GPU"),
        (["set", "--gpu", "-1", "utilization.gpu=1"], "no GPU"),
        (["set", "--gpu", "1", "utilization.gpu"], "KEY=VALUE"),
        (["fault", "inject", "--gpu", "1"], "mode"),
    )
    for words, said in cases:
        assert said in refuse(node, 2, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["set", "--gpu", "1"], "KEY=VALUE", id="nothing to set"),
        pytest.param(["get", "--gup", "1"], "--gup", id="unknown option"),
        pytest.param(["fault", "inject", "--gpu", "1", "sick"], "fallen_off_bus", id="unknown fault"),
        pytest.param(["fault", "inject", "lost"], "--gpu", id="which GPU"),
        pytest.param(["fault", "inject", "version-skew", "--gpu", "1"], "leave out --gpu", id="not a GPU's"),
        pytest.param(["fault", "inject", "--gpu", "1", "--kernel-version", "5", "lost"], "only for", id="no version"),
        pytest.param(["fault", "break"], "inject, list, clear", id="unknown verb"),
        pytest.param(["down", "--all", "--name", "x"], "--all", id="which node"),
    ],
)
def test_usage_fault_is_one_line_and_exit_2(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    """Before any node is looked for."""
    monkeypatch.setattr(sys, "argv", ["simnode", *words])
    with suppress(SystemExit):
        assert talk(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("simnode: ")
    assert said in line


@pytest.mark.parametrize("words", [["set"], ["get"], ["fault"], ["fault", "inject"], ["down"], ["ls"]], ids=" ".join)
def test_help(runner: Runner, words: list[str]) -> None:
    """Each tells its options."""
    assert succeed(runner, *words, "--help").startswith(f"usage: simnode {' '.join(words)} ")


def test_every_command_is_listed(runner: Runner) -> None:
    """With what it is for, whoever parses its words."""
    listing = succeed(runner, "--help")
    for verb in ("run", "up", "exec", *(verb.name for verb in VERBS)):
        assert f"\n  {verb} " in listing


def test_without_a_name_inside_a_node(node: Runner) -> None:
    """Commands inside talk to the node they are in, whatever else stands: in `exec` and in `run`."""
    script = f"{SIMNODE_WORDS} set --gpu 1 thermal.temperature_gpu_c=77; nvidia-smi"
    assert succeed(node, "run", "--gpus", "2", "--", "sh", "-c", script).count(" 77C ") == 1
    assert succeed(node, "exec", "--", "nvidia-smi").count(" 77C ") == 0
    assert succeed(node, "exec", "--", "sh", "-c", script).count(" 77C ") == 1
    assert succeed(node, "exec", "--root", "--", "sh", "-c", script).count(" 77C ") == 1


def test_inside_a_directory_for_want_of_namespaces(refused: Runner) -> None:
    """There SIMNODE_IMAGE leads to the node."""
    script = f"{SIMNODE_WORDS} set --gpu 1 thermal.temperature_gpu_c=77; nvidia-smi"
    assert refused.run("run", "--gpus", "2", "--", "sh", "-c", script).stdout.count(" 77C ") == 1


def test_imports_next_to_nothing(nodes: Runner) -> None:
    """What would cost more than the interpreter's start stays out."""
    succeed(nodes, "up", "--gpus", "2")
    heavy = {"asyncio", "msgspec", "yaml", "click", "ctypes", "inspect", "pathlib", "typing"}
    verbs = (
        ["set", "--gpu", "1", "thermal.temperature_gpu_c=91"],
        ["get", "thermal.temperature_gpu_c"],
        ["reset"],
        ["status"],
        ["ls"],
        ["fault", "list"],
        ["down"],
    )
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\nfrom simnode.cli import main\nfor words in {verbs!r}:\n"
        f"    sys.argv = ['simnode', *words]\n    print(main(), *({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", script],
        **as_user(nodes.uid),
        env=nodes.environ(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == "0\n" * len(verbs)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another's uid")
def test_root_acts_in_the_owners_name(nodes: Runner) -> None:
    """In a user namespace root would be nobody; it becomes the owner, also in `exec`."""
    name = f"--name={nodes.mark}"
    succeed(nodes, "up", name, "--gpus", "2")
    done = _as_root(nodes, "set", name, "--gpu", "1", "thermal.temperature_gpu_c=91")
    assert (done.returncode, done.stderr) == (0, "")
    assert succeed(nodes, "get", name, "--gpu", "1", "thermal.temperature_gpu_c") == "91\n"
    assert _as_root(nodes, "exec", name, "--", "id", "-u").stdout == f"{nodes.uid}\n"
    assert _as_root(nodes, "exec", name, "--root", "--", "id", "-u").stdout == "0\n"
    assert nodes.mark in _as_root(nodes, "ls").stdout
    assert _as_root(nodes, "down", name).returncode == 0
    assert listed(nodes) == {}


def _as_root(node: Runner, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SIMNODE, *words], env=node.environ(), cwd="/", capture_output=True, text=True, timeout=30, check=False
    )


def test_file_says_where_the_node_is(node: Runner) -> None:
    """One file, of the owner alone."""
    (file,) = Path(node.scratch / "simnode").iterdir()
    assert (file.name, file.stat().st_mode & 0o777, file.stat().st_uid) == ("default", 0o600, node.uid)
