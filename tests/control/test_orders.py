"""What a running node is told through its control socket, and what it then is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simnode.control_client import FAILED, REFUSED, ControlError, call
from simnode.profile import load_board
from tests.control.nodes import Node, running

TEMPERATURE = "thermal.temperature_gpu_c"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("control") / "node") as node:
        yield node


@pytest.fixture
def node(shared: Node) -> Iterator[Node]:
    shared.call("reset")
    yield shared


def temperatures(node: Node) -> list[Any]:
    return [node.get(index, TEMPERATURE) for index in range(8)]


def refusal(node: Node, verb: str, **fields: object) -> tuple[int, list[str]]:
    with pytest.raises(ControlError) as raised:
        node.call(verb, **fields)
    return raised.value.code, list(raised.value.faults)


def test_a_value_of_one_gpu_is_in_force_when_the_answer_comes(node: Node) -> None:
    usual = temperatures(node)
    generation = node.set(3, f"{TEMPERATURE}=91")["generation"]
    assert node.agent.record.generation == generation
    assert temperatures(node) == [*usual[:3], 91, *usual[4:]]


def test_base_gives_way_to_all_and_all_to_a_device(node: Node) -> None:
    uuid = node.call("status")["gpus"][5]["uuid"]
    node.set(uuid.upper(), f"{TEMPERATURE}=40")
    node.set("all", f"{TEMPERATURE}=50")
    assert temperatures(node) == [50, 50, 50, 50, 50, 40, 50, 50]
    node.call("reset", gpu=5)
    assert temperatures(node) == [50] * 8


def test_null_removes_and_a_list_replaces(node: Node) -> None:
    node.set(1, "processes=[{pid: 7, name: a}, {pid: 8, name: b}]", "ecc=null")
    node.set(1, "processes=[{pid: 9, name: c}]")
    assert node.get(1, "processes") == [{"pid": 9, "name": "c"}]
    assert node.get(1, "ecc.mode_current") is None
    assert node.get(2, "ecc.mode_current") == "enabled"


def test_reset_of_keys_leaves_the_others(node: Node) -> None:
    node.set(2, f"{TEMPERATURE}=91", "utilization.gpu=7")
    node.call("reset", gpu=2, keys=[TEMPERATURE])
    assert (node.get(2, TEMPERATURE) < 91, node.get(2, "utilization.gpu")) == (True, 7)


def test_kernel_modules_of_another_driver_are_a_fault_of_the_node(node: Node) -> None:
    """Of an older driver than the libraries unless it is said; it goes with all others, not with one GPU's."""
    node.call("fault-inject", gpu=1, mode="lost")
    node.call("fault-skew")
    driver, loaded = (node.call("status")[key] for key in ("driver_version", "loaded_version"))
    assert (node.root / "sys/module/nvidia/version").read_text() == f"{loaded}\n" != f"{driver}\n"
    node.call("fault-skew", version="560.28.03")
    node.call("fault-clear", gpu=1)
    (fault,) = node.call("fault-list")["faults"]
    assert (fault["gpu"], fault["mode"], fault["loaded_version"]) == (None, "version_skew", "560.28.03")
    node.call("fault-clear")
    assert node.call("fault-list")["faults"] == []
    assert (node.root / "sys/module/nvidia/version").read_text() == f"{driver}\n"


@pytest.mark.parametrize(("version", "reason"), [("5", "must be a driver version"), (None, "there is no skew")])
def test_a_skew_that_is_none_is_refused(node: Node, version: str | None, reason: str) -> None:
    driver = node.call("status")["driver_version"]
    code, reasons = refusal(node, "fault-skew", version=version or driver)
    assert code == REFUSED
    assert reason in reasons[0]


def test_a_profile_whose_modules_are_another_drivers_is_healed_too(tmp_path: Path) -> None:
    raw = load_board("h100").raw.replace(b"system:\n", b"system:\n  loaded_version: 535.261.03\n")
    with running(tmp_path / "node", raw) as node:
        assert [fault["mode"] for fault in node.call("fault-list")["faults"]] == ["version_skew"]
        node.call("fault-clear")
        assert node.call("fault-list")["faults"] == []


def test_the_file_is_the_store(node: Node) -> None:
    node.set("all", "utilization.gpu=1")
    node.set(3, "load.pattern=wave", "serial='0123'")
    stored = node.root / "state/overrides.yaml"
    assert stored.read_text() == (
        'version: 1\nall:\n  utilization:\n    gpu: 1\ndevices:\n  "3":\n    load:\n      pattern: wave\n'
        '    serial: "0123"\n'
    )
    assert stored.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in stored.parent.iterdir() if path.suffix == ".tmp"] == []


def test_a_set_that_changes_nothing_keeps_the_generation(node: Node) -> None:
    generation = node.set(0, f"{TEMPERATURE}=55")["generation"]
    assert node.set(0, f"{TEMPERATURE}=55")["generation"] == generation
    assert node.set(0, f"{TEMPERATURE}=56")["generation"] == generation + 1


@pytest.mark.parametrize("verb", ["set", "get", "reset"])
def test_of_a_crowd_of_wrong_keys_each_is_told(node: Node, verb: str) -> None:
    keys = [f"thermal.temperature_gpu_{number}" for number in range(500)]
    asked = {"assignments": [f"{key}=1" for key in keys]} if verb == "set" else {"keys": keys}
    code, faults = refusal(node, verb, gpu=3, **asked)
    assert (code, len(faults)) == (REFUSED, 500)
    assert faults[0].endswith('is no known key; did you mean "temperature_gpu_c"?')
    assert faults[-1].endswith(f"{keys[-1]}: is no known key")


@pytest.mark.parametrize(
    ("verb", "fields", "said"),
    [
        pytest.param(
            "set",
            {"gpu": 3, "assignments": ["thermal.temperature_gpu=9"]},
            'set: thermal.temperature_gpu: is no known key; did you mean "temperature_gpu_c"?',
            id="unknown key",
        ),
        pytest.param(
            "set",
            {"gpu": 3, "assignments": [f"{TEMPERATURE}=hot"]},
            f'set: {TEMPERATURE}: must be an integer from 0 to 250, not "hot"',
            id="wrong value",
        ),
        pytest.param(
            "set",
            {"gpu": 3, "assignments": ["memory.used_bytes=999999999999999"]},
            "set: memory.used_bytes: 999999999999999 used and 502792192 reserved bytes are more than the total of "
            "85520809984",
            id="contradiction",
        ),
        pytest.param(
            "set",
            {"gpu": 8, "assignments": [f"{TEMPERATURE}=9"]},
            'the node has no GPU "8": it has 0 to 7, or give a UUID or all',
            id="no such GPU",
        ),
        pytest.param("set", {"gpu": 3, "assignments": []}, "nothing to set: give KEY=VALUE", id="nothing"),
        pytest.param("sat", {}, "no request: Invalid value 'sat'", id="unknown verb"),
        pytest.param("get", {"kees": []}, "no request: Object contains unknown field `kees`", id="unknown field"),
        pytest.param("fault-inject", {"gpu": 3}, "a fault is a mode", id="no fault"),
        pytest.param(
            "fault-inject", {"gpu": 3, "mode": "melted"}, "no request: Invalid enum value 'melted'", id="mode"
        ),
        pytest.param(
            "get",
            {"gpu": 3, "keys": ["thermal.temperatur_gpu_c"]},
            'get: thermal.temperatur_gpu_c: is no known key; did you mean "temperature_gpu_c"?',
            id="get of an unknown key",
        ),
        pytest.param("get", {"keys": ["nonsense"]}, "get: nonsense: is no known key", id="get of nonsense"),
        pytest.param(
            "get",
            {"keys": ["system.num_device"]},
            'get: system.num_device: is no known key; did you mean "num_devices"?',
            id="get of an unknown key of a section",
        ),
        pytest.param(
            "get",
            {"gpu": 3, "keys": ["system.num_devices"]},
            "get: system.num_devices: is the node's own value: leave out --gpu",
            id="get of the node's value from a GPU",
        ),
        pytest.param(
            "get",
            {"keys": [f"{TEMPERATURE}.deeper"]},
            f"get: {TEMPERATURE}.deeper: is no known key: there is nothing below a value",
            id="get below a value",
        ),
        pytest.param("reset", {"gpu": 3, "keys": ["nonsense"]}, "reset: nonsense: is no known key", id="reset"),
        pytest.param(
            "set",
            {"assignments": ["utilization.gpu=5"]},
            "set: utilization: is a GPU's value: add --gpu N or --gpu all",
            id="a GPU's value without a GPU",
        ),
        pytest.param(
            "set",
            {"gpu": "all", "assignments": ["system.num_devices=5"]},
            "set: system: is the node's own value: leave out --gpu",
            id="the node's value with a GPU",
        ),
        pytest.param("set", {"assignments": ["system.colour=1"]}, "set: system.colour: is no known key", id="section"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(node: Node, verb: str, fields: dict[str, Any], said: str) -> None:
    generation = node.call("status")["generation"]
    code, faults = refusal(node, verb, **fields)
    assert code == REFUSED
    assert faults[0].startswith(said), faults
    assert node.call("status")["generation"] == generation
    assert not node.call("status")["overridden"]


def test_several_faults_come_a_line_each(node: Node) -> None:
    _, faults = refusal(node, "set", gpu=0, assignments=["a=1", f"{TEMPERATURE}=x"])
    assert len(faults) == 2


def test_count_and_driver_change_in_a_standing_node(node: Node) -> None:
    for gpus in (4, 0, 8):
        node.set(None, f"system.num_devices={gpus}")
        assert len(node.call("status")["gpus"]) == gpus
        information = node.root / "driver/proc/driver/nvidia/gpus"
        assert len(list(information.iterdir())) == gpus
    before = node.call("status")["driver_version"]
    for driver in ("550.163.01", "580.65.06"):
        node.set(None, f"system.driver_version={driver}")
        assert node.call("status")["driver_version"] == driver
        assert (node.root / f"driver/usr/lib64/libnvidia-ml.so.{driver}").exists()
        assert len(list((node.root / "driver/usr/lib64").glob("libnvidia-ml.so.*"))) == 2
    node.call("reset")
    assert node.call("status")["driver_version"] == before


def test_nvlink_goes_and_comes_back(node: Node) -> None:
    node.set(None, "nvlink=null")
    assert not node.agent.state or not node.agent.state.fabric.enabled
    node.call("reset")
    assert node.agent.state is not None
    assert node.agent.state.fabric.enabled


def test_a_runtime_change_makes_no_wave(node: Node) -> None:
    before = node.agent.record.timings["stage"].count
    node.set("all", f"{TEMPERATURE}=44")
    node.call("fault-inject", gpu="all", mode="lost")
    node.call("fault-clear")
    assert node.agent.record.timings["stage"].count == before


def test_a_fault_of_all_can_be_cancelled_for_one(node: Node) -> None:
    node.call("fault-inject", gpu="all", mode="fallen_off_bus")
    assert [fault["gpu"] for fault in node.call("fault-list")["faults"]] == list(range(8))
    node.call("fault-clear", gpu=3)
    faults = node.call("fault-list")["faults"]
    assert [fault["gpu"] for fault in faults] == [0, 1, 2, 4, 5, 6, 7]
    assert {(fault["mode"], fault["xid"]) for fault in faults} == {("fallen_off_bus", 79)}
    assert lost(node) == [15, 15, 15, 0, 15, 15, 15, 15]
    node.call("fault-inject", gpu="all", mode="lost")
    assert lost(node) == [15] * 8
    node.call("fault-clear")
    assert lost(node) == [0] * 8
    assert not node.call("status")["overridden"]


def lost(node: Node) -> list[int]:
    assert node.agent.state is not None
    return [device.lost for device in node.agent.state.runtime.devices]


def test_an_uncorrectable_error_counts_and_has_its_xid(node: Node) -> None:
    key = "ecc.errors.volatile.double_bit.device_memory"
    node.call("fault-inject", gpu=2, mode="ecc_uncorrectable")
    assert node.agent.state is not None
    counts = [dict(device.values).get(key) for device in node.agent.state.runtime.devices[1:3]]
    assert counts == [None, 1]
    assert node.call("fault-list")["faults"][0]["xid"] == 48


def test_status_says_what_the_node_is_and_how_it_does(node: Node) -> None:
    node.call("fault-inject", gpu=6, xid=31)
    status = node.call("status")
    assert status["overridden"]
    assert [gpu["index"] for gpu in status["gpus"] if gpu["fault"]] == [6]
    assert {name: probe["ok"] for name, probe in status["health"].items()} == {
        "live": True,
        "ready": True,
        "staged": True,
    }


def test_get_without_keys_has_everything(node: Node) -> None:
    tree = node.call("get", gpu=0)["devices"]["0"]
    assert tree["thermal"]["temperature_gpu_c"] == node.get(0, TEMPERATURE)
    assert node.get(0, "pci.bus_id") == "0000:53:00.0"


def test_values_of_the_nodes_own_sections_are_read_back(node: Node) -> None:
    node.set(None, "system.num_devices=4", "system.driver_version=550.163.01", "nvlink.links_per_gpu=12")
    keys = ["system.num_devices", "system.driver_version", "system.cuda_version", "nvlink.links_per_gpu", "mig"]
    answer = node.call("get", keys=keys)
    cuda = node.call("status")["cuda_version"]
    assert answer["devices"] == {}
    assert answer["node"] == dict(zip(keys, [4, "550.163.01", cuda, 12, None], strict=True))
    node.call("reset", keys=["system.num_devices"])
    mixed = node.call("get", keys=["system.num_devices", "mig.mode_current"])
    assert mixed["node"] == {"system.num_devices": 8}
    assert [list(values) for values in mixed["devices"].values()] == [["mig.mode_current"]] * 8


def test_a_failure_that_waits_is_listed_as_one(node: Node) -> None:
    waiting = "after_calls/probability have no effect yet"
    node.set(1, "failure={mode: lost, after_calls: 5}")
    node.set(2, "failure={mode: lost, probability: 0.5}")
    node.set(3, "failure={mode: lost, after_calls: 0}")
    assert [fault["waiting"] for fault in node.call("fault-list")["faults"]] == [waiting, waiting, None]
    assert node.call("status")["gpus"][1]["fault"]["waiting"] == waiting
    assert lost(node)[:4] == [0, 0, 0, 15]


def test_overrides_survive_the_agent(tmp_path: Path) -> None:
    with running(tmp_path / "node") as first:
        generation = first.set(3, f"{TEMPERATURE}=91")["generation"]
    assert not first.socket.exists()
    with running(tmp_path / "node") as again:
        assert again.get(3, TEMPERATURE) == 91
        assert again.call("status")["generation"] == generation + 1


def test_a_hand_edit_is_kept_by_the_next_set(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        (node.root / "state/overrides.yaml").write_text("all: {utilization: {gpu: 9}}  # mine\n")
        node.set(3, f"{TEMPERATURE}=91")
        assert (node.get(3, "utilization.gpu"), node.get(3, TEMPERATURE)) == (9, 91)
        (node.root / "state/overrides.yaml").write_text("all: {utilization: {gpu: much}}\n")
        code, faults = refusal(node, "set", gpu=3, assignments=[f"{TEMPERATURE}=92"])
        assert code == REFUSED
        assert "overrides.yaml:1: all.utilization.gpu: must be an integer" in faults[0]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("all: {utilization: {gpu: much}}\n", id="value"),
        pytest.param("all: {\n", id="syntax"),
        pytest.param("all: {memory: {used_bytes: 999999999999999}}\n", id="contradiction"),
    ],
)
def test_a_bare_reset_mends_a_broken_file(tmp_path: Path, broken: str) -> None:
    with running(tmp_path / "node") as node:
        node.set(3, f"{TEMPERATURE}=91")
        stored = node.root / "state/overrides.yaml"
        stored.write_text(broken)
        assert refusal(node, "reset", gpu=3)[0] == REFUSED
        assert refusal(node, "reset", keys=[TEMPERATURE])[0] == REFUSED
        assert stored.read_text() == broken
        node.call("reset")
        assert stored.read_text() == "version: 1\n"
        assert node.get(3, TEMPERATURE) < 91
        assert not node.call("status")["overridden"]
        node.set(3, f"{TEMPERATURE}=92")
        assert node.get(3, TEMPERATURE) == 92


def test_an_unknown_key_of_a_hand_edit_can_be_reset(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        stored = node.root / "state/overrides.yaml"
        stored.write_text("version: 1\nall: {colour: red}\n")
        node.call("reset", keys=["colour"])
        assert stored.read_text() == "version: 1\n"


def test_what_is_left_of_a_gpu_that_is_gone_can_be_taken_back(node: Node) -> None:
    node.set(7, f"{TEMPERATURE}=91")
    node.call("fault-inject", gpu=7, mode="lost")
    node.set(None, "system.num_devices=4")
    node.call("fault-clear", gpu=7)
    node.call("reset", gpu="7", keys=[TEMPERATURE])
    assert refusal(node, "reset", gpu=7) == (REFUSED, ['the node has no GPU "7": it has 0 to 3, or give a UUID or all'])
    assert "\ndevices:" not in (node.root / "state/overrides.yaml").read_text()
    assert refusal(node, "set", gpu=7, assignments=[f"{TEMPERATURE}=9"])[0] == REFUSED


def test_status_says_why_older_documents_are_in_force(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        assert node.call("status")["source_error"] == ""
        node.set(3, f"{TEMPERATURE}=91")
        (node.root / "state/overrides.yaml").write_text("all: {utilization: {gpu: much}}\n")
        deadline = time.monotonic() + 30
        while not (told := node.call("status")["source_error"]):
            assert time.monotonic() < deadline
        assert "overrides.yaml:1: all.utilization.gpu: must be an integer" in told


def test_a_store_that_cannot_be_written_is_a_failure_and_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        (node.root / "state/overrides.yaml.lock").mkdir()
        code, faults = refusal(node, "set", gpu=3, assignments=[f"{TEMPERATURE}=92"])
        assert (code, faults[0].split(":")[0]) == (FAILED, "cannot be stored")
        assert node.get(3, TEMPERATURE) != 92


def test_without_an_agent_the_client_says_so(tmp_path: Path) -> None:
    with pytest.raises(ControlError) as raised:
        call(tmp_path / "agent.sock", {"verb": "status"})
    assert raised.value.code == FAILED
    assert raised.value.faults == (f"{tmp_path}/agent.sock: no agent answers: No such file or directory",)
