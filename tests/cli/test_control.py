"""`simnode set`, `get`, `reset`, `status` and `fault` on a running node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.control.nodes import Node, running

SIMNODE = (sys.executable, "-P", "-m", "simnode")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("cli") / "node") as node:
        yield node


@pytest.fixture
def node(shared: Node) -> Iterator[Node]:
    shared.call("reset")
    yield shared


def simnode(node: Node, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.defpath, "SIMNODE_CONTROL": str(node.socket)}
    return subprocess.run([*SIMNODE, *words], env=environ, capture_output=True, text=True, timeout=30, check=False)


def said(node: Node, *words: str) -> str:
    done = simnode(node, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_is_set_is_got_and_reset(node: Node) -> None:
    assert said(node, "set", "--gpu", "3", "thermal.temperature_gpu_c=91", "utilization.gpu=5") == ""
    assert said(node, "get", "--gpu", "3", "thermal.temperature_gpu_c") == "91\n"
    assert said(node, "get", "--gpu", "3", "thermal.temperature_gpu_c", "utilization.gpu") == (
        "3:thermal.temperature_gpu_c=91\n3:utilization.gpu=5\n"
    )
    assert said(node, "get", "utilization.gpu").splitlines()[2:4] == ["2:utilization.gpu=0", "3:utilization.gpu=5"]
    assert json.loads(said(node, "get", "--json", "--gpu", "3", "utilization.gpu")) == {"3": {"utilization.gpu": 5}}
    assert said(node, "reset", "--gpu", "3", "utilization.gpu") == ""
    assert said(node, "get", "--gpu", "3", "utilization.gpu") == "0\n"


def test_a_group_is_a_line_for_each_of_its_keys_that_is_set(node: Node) -> None:
    assert said(node, "get", "--gpu", "3", "remapped_rows").splitlines()[0] == "3:remapped_rows.correctable=0"
    said(node, "set", "--gpu", "3", "failure.mode=lost")
    assert said(node, "get", "--gpu", "3", "failure") == "3:failure.mode=lost\n"
    assert said(node, "get", "--gpu", "3", "failure.xid.code") == "null\n"
    assert json.loads(said(node, "get", "--json", "--gpu", "3", "failure")) == {"3": {"failure": {"mode": "lost"}}}


def test_a_socket_and_a_name_exclude_each_other(node: Node) -> None:
    done = simnode(node, "status", "--name", "lab", "--socket", str(node.socket))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not allowed with argument --name" in done.stderr


def test_the_node_itself_is_set_without_a_gpu(node: Node) -> None:
    said(node, "set", "system.num_devices=2")
    assert len(json.loads(said(node, "status", "--json"))["gpus"]) == 2
    assert said(node, "get", "system.num_devices") == "2\n"
    assert json.loads(said(node, "get", "--json", "system.num_devices")) == {"node": {"system.num_devices": 2}}
    assert said(node, "get", "system.num_devices", "utilization.gpu") == (
        "node:system.num_devices=2\n0:utilization.gpu=0\n1:utilization.gpu=0\n"
    )


def test_status_is_for_people_and_for_programs(node: Node) -> None:
    said(node, "fault", "inject", "--gpu", "1", "fallen_off_bus")
    lines = said(node, "status").splitlines()
    assert lines[0].startswith("generation ")
    assert lines[1:4] == ["live: yes", "ready: yes", "staged: yes"]
    assert lines[5].endswith("; fallen_off_bus, XID 79")
    assert json.loads(said(node, "status", "--json"))["gpus"][1]["fault"]["xid"] == 79


def test_a_failure_that_waits_is_shown_as_one(node: Node) -> None:
    done = simnode(node, "set", "--gpu", "1", "failure={mode: lost, after_calls: 5}")
    assert (done.returncode, done.stderr) == (
        0,
        "simnode: note: set: no effect yet: failure.after_calls; a failure that waits for a trigger never comes\n",
    )
    line = "lost; waiting: after_calls/probability have no effect yet\n"
    assert said(node, "fault", "list").endswith(f": {line}")
    assert f"; {line}" in said(node, "status")


def test_what_has_no_effect_is_set_all_the_same_and_said(node: Node) -> None:
    done = simnode(node, "set", "--gpu", "1", "features.fp8_support=true", "gpm.supported=true", "utilization.gpu=5")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "simnode: note: set: no effect yet: features.fp8_support, gpm.supported\n"
    assert said(node, "get", "--gpu", "1", "features.fp8_support") == "true\n"


def test_a_mode_that_is_set_forgets_the_xid_of_the_fault_before(node: Node) -> None:
    said(node, "fault", "inject", "--gpu", "1", "fallen_off_bus")
    said(node, "set", "--gpu", "1", "failure.mode=lost")
    assert said(node, "fault", "list").endswith(": lost\n")


@pytest.mark.parametrize("spelling", ["version-skew", "version_skew"])
def test_a_mode_is_spelled_as_the_list_or_as_json_has_it(node: Node, spelling: str) -> None:
    said(node, "fault", "inject", spelling)
    assert said(node, "fault", "list").startswith("node: version-skew, ")
    assert json.loads(said(node, "fault", "list", "--json"))[0]["mode"] == "version_skew"
    said(node, "fault", "clear")
    said(node, "fault", "inject", "--gpu", "1", "fallen-off-bus" if spelling == "version-skew" else "fallen_off_bus")
    assert said(node, "fault", "list").endswith(": fallen_off_bus, XID 79\n")


def test_faults_come_and_go(node: Node) -> None:
    said(node, "fault", "inject", "--gpu", "all", "lost")
    said(node, "fault", "clear", "--gpu", "2")
    said(node, "fault", "inject", "--gpu", "2", "--xid", "31")
    lines = said(node, "fault", "list").splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"GPU {index}" for index in range(8)]
    assert [line.split(": ")[2] for line in lines] == ["lost", "lost", "XID 31", "lost", "lost", "lost", "lost", "lost"]
    said(node, "fault", "clear")
    assert said(node, "fault", "list") == ""


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["set", "--gpu", "3", "thermal.temperature_gpu_c=hot"], 'must be an integer from 0 to 250, not "hot"'),
        (["set", "--gpu", "9", "utilization.gpu=1"], 'the node has no GPU "9"'),
        (["set", "--gpu", "3"], "required: KEY=VALUE"),
        (["set", "utilization.gpu=5"], "add --gpu N or --gpu all"),
        (["set", "--gpu", "3", "utilization.gpu"], '"utilization.gpu" must be KEY=VALUE'),
        (["set", "--gpu", "3", "name=N/A"], "name: must not be N/A"),
        (["set", "--gpu", "all", "memory.total_bytes="], "memory.total_bytes: must not be unset"),
        (["set", "--gpu", "3", "thermal.temp=1"], 'did you mean "temperature_gpu_c"'),
        (["set", "temperature=5"], '"thermal.target_temperature_c"? It is a GPU\'s value: add --gpu N'),
        (["set", "--gpu", "3", "num_devices=5"], '"system.num_devices"? It is the node\'s own value: leave out --gpu'),
        (["set", "--gpu", "3", "utilization=5"], "set one, such as utilization.gpu"),
        (["set", "--gpu", "3", "uuid=5"], "uuid: is what makes a GPU this one, and no runtime value"),
        (["set", "--gpu", "3", "pci={bus_id: 5}"], "pci.bus_id: is what makes a GPU this one, and no runtime value"),
        (["set", "--gpu", "3", "thermal={temp: 1}"], 'thermal.temp: is no known key; did you mean "temperature_gpu_c"'),
        (
            ["set", "--gpu", "3", "processes=[{pid: 7, nam: x}]"],
            'processes[0].nam: is no known key; did you mean "name"?',
        ),
        (["get", "--gpus", "3"], 'did you mean "--gpu"?'),
        (["status", "lab"], "a node is named by --name; `simnode status --help` tells more"),
        (["fault", "injct"], 'did you mean "inject"?'),
        (["get", "--gpu", "3", "nonsense"], "nonsense: is no known key"),
        (["reset", "--gpu", "3", "thermal.temperatur_gpu_c"], 'did you mean "temperature_gpu_c"?'),
        (["fault", "inject", "lost"], "which GPU fails? Give --gpu"),
        (["fault", "inject", "--gpu", "1", "melted"], "'melted' is no way to fail: it is one of lost,"),
        (["fault", "inject", "--gpu", "1", "lots"], 'did you mean "lost"?'),
        (["fault", "inject", "--gpu", "1"], "a fault is a mode"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_2(node: Node, words: list[str], fault: str) -> None:
    done = simnode(node, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr
    assert done.stderr.startswith("simnode: ")
    assert done.stderr.count("\n") == 1


def test_no_node_is_one_line_and_exit_1(node: Node) -> None:
    done = simnode(node, "status", "--socket", "/nowhere/agent.sock")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "simnode: /nowhere/agent.sock: no agent answers: No such file or directory\n"


def test_the_commands_import_nothing_heavy(node: Node) -> None:
    script = (
        "import sys; from simnode.cli import main; sys.argv = ['simnode', 'set', '--gpu', '1', 'utilization.gpu=3']\n"
        "assert main() == 0\nprint(*sys.modules)"
    )
    environ = {"PATH": os.defpath, "SIMNODE_CONTROL": str(node.socket)}
    run = subprocess.run([sys.executable, "-P", "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert {"asyncio", "click", "msgspec", "yaml", "simnode.profile"}.isdisjoint(run.stdout.split())


def test_the_schema_is_json() -> None:
    run = subprocess.run([*SIMNODE, "profile", "schema"], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["title"] == "simnode profile"
