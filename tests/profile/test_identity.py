"""How many GPUs a node has, and what makes each of them this one."""

from __future__ import annotations

from collections import Counter

import pytest

from simnode.profile import Options, compile_state, load_text
from simnode.state import State
from tests.profile.documents import SMALL, faults, h100, readings, small


def _unique(values: list[object]) -> bool:
    return max(Counter(values).values(), default=1) == 1


@pytest.mark.parametrize("gpus", [0, 1, 8, 16, 64])
def test_no_two_gpus_are_the_same_one(gpus: int) -> None:
    state = h100(gpus=gpus)
    devices = state.devices
    assert len(devices) == state.node_shape.num_gpus == len(state.runtime.devices) == gpus
    assert [device.index for device in devices] == list(range(gpus))
    for name in ("uuid", "serial", "pci_bus_id", "minor_number"):
        assert _unique([getattr(device, name) for device in devices]), name
    for key in ("pdi", "platform.module_id"):
        assert _unique([readings(state, index)[key] for index in range(gpus)]), key
    taken = {switch.pci_bus_id for switch in state.switches}
    assert not taken & {device.pci_bus_id for device in devices}
    assert sum(len(root.device_bdfs) for root in state.pci_topology()) == gpus


def test_the_listed_gpus_stay_what_they_are_when_more_join() -> None:
    assert h100(gpus=64).devices[:8] == h100().devices


def test_synthesised_identities_follow_the_listed_ones_and_never_change() -> None:
    ninth = h100(gpus=9).devices[8]
    assert ninth.uuid == "GPU-48313030-0000-0000-0000-000000000008"
    assert ninth.serial == "1650000000009"
    assert ninth.minor_number == 8
    assert h100(gpus=64).devices[8] == ninth


def test_new_gpus_spread_over_the_root_complexes() -> None:
    assert [len(root.device_bdfs) for root in h100(gpus=64).pci_topology()] == [32, 32]


def test_a_synthesised_identity_evades_a_listed_one() -> None:
    text = SMALL.replace("00000000000b", "000000000002").replace("- index: 1", "- index: 1\n    minor_number: 2")
    state = compile_state(load_text(text.encode(), "p.yaml"), Options(gpus=5), {})
    assert _unique([device.uuid for device in state.devices])
    assert _unique([device.minor_number for device in state.devices])


def test_declared_bus_ids_go_to_the_gpus_that_list_none() -> None:
    text = SMALL.replace("    pci: {bus_id: 0000:0F:00.0}\n", "")
    roots = "pcie_topology: {root_complexes: [{id: pci0000:00, numa_node: 0, devices: [0000:07:00.0, 0000:44:00.0]}]}\n"
    state = compile_state(load_text((text + roots).encode(), "p.yaml"), Options(), {})
    assert [device.pci_bus_id for device in state.devices] == ["0000:07:00.0", "0000:44:00.0"]


def test_bus_ids_are_normalised() -> None:
    text = SMALL.replace("0000:0F:00.0", "00000000:AF:1E.0")
    state = compile_state(load_text(text.encode(), "p.yaml"), Options(), {})
    assert state.devices[1].pci_bus_id == "0000:af:1e.0"


def test_root_complexes_are_normalised_and_distinct() -> None:
    roots = "pcie_topology: {root_complexes: [{id: pci0000:AB}, {id: pci00000000:ab}]}\n"
    assert faults(SMALL + roots) == [
        "p.yaml:15: pcie_topology.root_complexes[1].id: root complex pci00000000:ab is already that of "
        "pcie_topology.root_complexes[0]"
    ]


def test_entries_are_matched_by_their_index() -> None:
    text = SMALL.replace("index: 0", "index: 9").replace("index: 1", "index: 0").replace("index: 9", "index: 1")
    state = compile_state(load_text(text.encode(), "p.yaml"), Options(), {})
    assert [device.uuid[-1] for device in state.devices] == ["b", "a"]


def test_a_serial_of_the_defaults_is_shared() -> None:
    text = SMALL.replace("  architecture", '  serial: "42"\n  architecture')
    state = compile_state(load_text(text.encode(), "p.yaml"), Options(gpus=3), {})
    assert [device.serial for device in state.devices] == ["42", "42", "42"]


def test_without_serials_there_are_none() -> None:
    assert [device.serial for device in small(gpus=3).devices] == ["", "", ""]


@pytest.mark.parametrize(
    ("options", "environ", "gpus"),
    [
        (Options(), {}, 2),
        (Options(), {"GPU_COUNT": "3"}, 3),
        (Options(), {"GPU_COUNT": ""}, 2),
        (Options(), {"GPU_COUNT": "0"}, 0),
        (Options(gpus=4), {"GPU_COUNT": "3"}, 4),
        (Options(gpus=0), {"GPU_COUNT": "3"}, 0),
    ],
)
def test_option_before_environment_before_profile(options: Options, environ: dict[str, str], gpus: int) -> None:
    state = compile_state(load_text(SMALL.encode(), "p.yaml"), options, environ)
    assert len(state.devices) == gpus


@pytest.mark.parametrize(("num_devices", "gpus"), [("", 2), (", num_devices: 1", 1), (", num_devices: 5", 5)])
def test_num_devices_before_the_entries(num_devices: str, gpus: int) -> None:
    text = SMALL.replace(", num_devices: 2", num_devices)
    assert len(_of(text).devices) == gpus


def test_a_profile_without_entries_is_of_eight() -> None:
    text = SMALL[: SMALL.index("devices:\n  -")].replace(", num_devices: 2", "")
    assert len(_of(text).devices) == 8
    assert len(_of(text + "devices: []\n").devices) == 0


def _of(text: str) -> State:
    return compile_state(load_text(text.encode(), "p.yaml"), Options(), {})
