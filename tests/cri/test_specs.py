"""The CDI specs of a State: which devices, what each gives, and that the specification allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simnode.host import File, Tree
from simnode.simulators.cri.contents import Node, specs
from simnode.state import State
from tests.cri.nodes import FACTS, NODE_ROOT, cri, partitioned, staged
from tests.cri.schema import faults, host_paths
from tests.examples import examples
from tests.simulators.states import device, state

DEV = f"{NODE_ROOT}/driver/dev"
CONTROL = ["nvidia-uvm", "nvidia-uvm-tools", "nvidiactl"]


def published(wanted: State, *directories: str) -> dict[str, Any]:
    """Each published file as a runtime reads it."""
    tree = cri(Path("/nonexistent"), *directories).published(wanted, FACTS)
    return {file.path: yaml.safe_load(file.content) for file in tree if isinstance(file, File)}


def gpu_spec(wanted: State) -> Any:
    return published(wanted)["run/cdi/nvidia.yaml"]


def given_by(spec: Any) -> dict[str, list[str]]:
    """The device nodes that each device gives, by their names in the container."""
    devices = {entry["name"]: entry["containerEdits"]["deviceNodes"] for entry in spec["devices"]}
    return {name: [node["path"].removeprefix("/dev/") for node in nodes] for name, nodes in devices.items()}


@st.composite
def states(draw: st.DrawFn) -> State:
    wanted = state(draw(st.integers(0, 5)))
    minors = [one.minor_number for one in wanted.devices]
    cut = draw(st.lists(st.sampled_from(minors), unique=True)) if minors else []
    small = [minor for minor in cut if minor < 64]
    return msgspec.structs.replace(
        partitioned(wanted, *small, instances=draw(st.integers(1, 3))), topology_raw=draw(st.sampled_from([b"", b"x"]))
    )


@examples(40)
@given(states())
def test_every_spec_is_valid_and_names_only_what_is_staged(wanted: State) -> None:
    tree = staged(wanted, FACTS) | cri(Path("/nonexistent")).tree(wanted, FACTS)
    there = {f"{NODE_ROOT}/{path}" for path in {*tree.paths, *tree.directories}}
    for path, spec in published(wanted).items():
        assert faults(spec) == [], path
        assert host_paths(spec) <= there, path


def test_a_gpu_has_its_index_and_its_uuid_for_names_and_its_minor_for_a_node() -> None:
    assert given_by(gpu_spec(state(2))) == {
        "0": ["nvidia63"],
        device(0).uuid: ["nvidia63"],
        "1": ["nvidia62"],
        device(1).uuid: ["nvidia62"],
        "all": ["nvidia63", "nvidia62"],
    }


def test_every_container_gets_the_control_nodes_the_driver_and_the_image_directory() -> None:
    edits = gpu_spec(state(1))["containerEdits"]
    assert [node["path"] for node in edits["deviceNodes"]] == [f"/dev/{name}" for name in CONTROL]
    assert [node["hostPath"] for node in edits["deviceNodes"]] == [f"{DEV}/{name}" for name in CONTROL]
    assert {mount["containerPath"]: mount["hostPath"].removeprefix(NODE_ROOT) for mount in edits["mounts"]} == {
        "/usr/lib64/libnvidia-ml.so.1": "/driver/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib64/libcuda.so.1": "/driver/usr/lib64/libcuda.so.1",
        "/usr/lib64/libcuda.so": "/driver/usr/lib64/libcuda.so",
        "/usr/lib/libnvidia-ml.so.1": "/driver/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/libcuda.so.1": "/driver/usr/lib64/libcuda.so.1",
        "/usr/lib/libcuda.so": "/driver/usr/lib64/libcuda.so",
        "/usr/bin/nvidia-smi": "/driver/usr/bin/nvidia-smi",
        "/etc/simnode": "/driver/config",
    }
    assert all(mount["options"] == ["ro", "nosuid", "nodev", "bind"] for mount in edits["mounts"])
    assert edits["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]


@pytest.mark.parametrize(
    ("topology", "orders"),
    [
        (b"", [("bind", "driver/proc/driver", "/proc/driver")]),
        (
            b"x",
            [
                ("bind", "driver/proc/driver", "/proc/driver"),
                ("overlay", "sys/devices", "/sys/devices"),
                ("overlay", "sys/bus", "/sys/bus"),
            ],
        ),
    ],
    ids=["a driver alone", "with a PCI tree"],
)
def test_the_hook_is_told_what_a_spec_cannot_have_mounted(topology: bytes, orders: list[tuple[str, str, str]]) -> None:
    (hook,) = gpu_spec(msgspec.structs.replace(state(1), topology_raw=topology))["containerEdits"]["hooks"]
    assert (hook["hookName"], hook["path"]) == ("createContainer", f"{NODE_ROOT}/cri/container-hook")
    words = [word for order, source, target in orders for word in (order, f"{NODE_ROOT}/{source}", target)]
    assert hook["args"] == ["container-hook", *words]
    assert hook["timeout"] > 0


def test_a_mig_device_has_its_uuid_and_its_place_for_names_and_gives_its_capabilities() -> None:
    wanted = partitioned(state(64), 1)
    nodes = given_by(gpu_spec(wanted))
    caps = {cap.name: f"nvidia-caps/nvidia-cap{cap.minor}" for cap in wanted.mig.caps()}
    first = ["nvidia1", caps["gpu1/gi1/access"], caps["gpu1/gi1/ci0/access"]]
    second = ["nvidia1", caps["gpu1/gi2/access"], caps["gpu1/gi2/ci0/access"]]
    uuids = [one.compute_instances[0].uuid for one in wanted.mig.gpus[0].gpu_instances]
    assert {name: given for name, given in nodes.items() if "nvidia-caps" in str(given) and name != "all"} == {
        uuids[0]: first,
        "62:0": first,
        uuids[1]: second,
        "62:1": second,
    }
    assert set(first + second) <= set(nodes["all"])
    assert len(nodes["all"]) == len(set(nodes["all"]))


def test_a_mig_device_without_capabilities_is_not_offered() -> None:
    wanted = partitioned(state(64), 1)
    driver = Tree(surface for surface in staged(wanted, FACTS) if "nvidia-caps" not in surface.path)
    names = {one.name for one in specs(wanted, Node(NODE_ROOT, driver))["nvidia.yaml"].devices}
    assert not {name for name in names if name.startswith("MIG-") or ":" in name}


def test_a_gpu_without_a_uuid_has_its_index_alone() -> None:
    anonymous = msgspec.structs.replace(device(0), uuid="")
    assert list(given_by(gpu_spec(msgspec.structs.replace(state(1), devices=(anonymous,))))) == ["0", "all"]


def test_the_injectors_spec_has_a_vendor_of_its_own_no_library_and_all_nodes() -> None:
    spec = published(state(2))["run/cdi/simnode.yaml"]
    assert spec["kind"] == "simnode.internal/gpu"
    assert given_by(spec) == {"0": ["nvidia63"], "1": ["nvidia62"], "all": ["nvidia63", "nvidia62", *CONTROL]}
    assert spec["containerEdits"]["env"] == ["SIMNODE_DEVICE_SOURCE=cdi"]
    assert "mounts" not in spec["containerEdits"]


def test_a_node_without_gpus_or_without_device_nodes_publishes_nothing() -> None:
    assert published(state(0)) == {}
    assert specs(state(2), Node(NODE_ROOT, Tree.empty)) == {}


def test_every_configured_directory_gets_the_same() -> None:
    files = published(state(1), "etc/cdi", "run/cdi")
    assert sorted(files) == [
        "etc/cdi/nvidia.yaml",
        "etc/cdi/simnode.yaml",
        "run/cdi/nvidia.yaml",
        "run/cdi/simnode.yaml",
    ]
    assert files["etc/cdi/nvidia.yaml"] == files["run/cdi/nvidia.yaml"]


def test_the_agents_own_prefix_is_nowhere(tmp_path: Path) -> None:
    for file in cri(tmp_path).published(state(2), FACTS):
        assert isinstance(file, File)
        assert str(tmp_path).encode() not in file.content


def test_with_no_directory_there_is_nothing_to_stage_either(tmp_path: Path) -> None:
    silent = cri(tmp_path)
    silent._runtimes = msgspec.structs.replace(silent._runtimes, directories=())
    assert silent.tree(state(1), FACTS) == silent.published(state(1), FACTS) == Tree.empty
