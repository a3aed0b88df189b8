"""What `pcie_topology` says of bridges: where each belongs, what a GPU without one gets, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.state import BridgeSpec, State
from tests.examples import examples
from tests.pcibus.trees import BOARDS, board, node
from tests.profile.documents import faults

ROOT = """
devices: [{pci: {bus_id: "0000:07:00.0"}}, {pci: {bus_id: "0000:08:00.0"}}]
pcie_topology:
  root_complexes:
    - id: "pci0000:00"
      devices: ["0000:07:00.0", "0000:08:00.0"]
      bridges:
"""
CHAIN = """\
        - {bdf: "0000:00:01.0", port: amd-root-port-1483, bus: 5}
        - {bdf: "0000:05:00.0", port: pex880xx, bus: 6}
        - {bdf: "0000:06:00.0", port: pex880xx, bus: 7}
"""
HEAD = "version: '1.0'\ndevice_defaults: {name: A, architecture: ampere, memory: {total_bytes: 1}, pci: {device_id: 1}}"


def shape(bridge: BridgeSpec) -> tuple[str, str, int, int]:
    """A bridge without what its kind gives it."""
    return bridge.pci_bus_id, bridge.port, bridge.secondary, bridge.subordinate


def shapes(state: State) -> list[tuple[str, str, int, int]]:
    """All bridges of a State."""
    return [shape(bridge) for bridge in state.node_shape.topology.bridges]


def test_a_listed_chain_is_a_root_port_and_a_switch() -> None:
    assert shapes(node(ROOT + CHAIN))[:3] == [
        ("0000:00:01.0", "root", 5, 7),
        ("0000:05:00.0", "upstream", 6, 7),
        ("0000:06:00.0", "downstream", 7, 7),
    ]


def test_a_gpu_on_a_bus_that_no_bridge_has_gets_a_root_port_like_the_listed_ones() -> None:
    made = node(ROOT + CHAIN).node_shape.topology.bridges
    assert shape(made[3]) == ("0000:00:02.0", "root", 8, 8)
    assert made[3].pci_device_id == made[0].pci_device_id


def test_a_gpu_on_its_roots_own_bus_needs_no_bridge() -> None:
    topology = """
devices: [{pci: {bus_id: "0001:00:00.0"}}, {pci: {bus_id: "0002:00:00.0"}}]
pcie_topology:
  root_complexes: [{id: "pci0001:00", devices: ["0001:00:00.0"]}, {id: "pci0002:00", devices: ["0002:00:00.0"]}]
"""
    assert shapes(node(topology)) == []


def test_bridges_that_lead_to_no_device_are_left_out() -> None:
    state = board("h100", 1)
    assert [bridge.pci_bus_id for bridge in state.node_shape.topology.bridges if bridge.root == "pci0000:50"] == [
        "0000:50:01.0",
        "0000:51:00.0",
        "0000:52:00.0",
    ]


@examples(10)
@given(st.sampled_from(BOARDS), st.none() | st.integers(0, 64))
def test_bus_numbers_are_a_tree(name: str, gpus: int | None) -> None:
    """No bus is below two bridges of one level, and a bridge's buses contain those of every bridge behind it."""
    bridges = board(name, gpus).node_shape.topology.bridges
    assert len({(bridge.pci_bus_id[:4], bridge.secondary) for bridge in bridges}) == len(bridges)
    by_bus = {(bridge.pci_bus_id[:4], bridge.secondary): bridge for bridge in bridges}
    for bridge in bridges:
        above = by_bus.get((bridge.pci_bus_id[:4], int(bridge.pci_bus_id[5:7], 16)))
        assert (above is None) == (bridge.port == "root")
        if above is not None:
            assert above.secondary <= bridge.secondary <= bridge.subordinate <= above.subordinate
            assert bridges.index(above) < bridges.index(bridge)


@examples(10)
@given(st.sampled_from(BOARDS), st.integers(0, 64))
def test_no_gpu_is_made_up_where_a_bridge_is(name: str, gpus: int) -> None:
    state = board(name, gpus)
    ends = [*(gpu.pci_bus_id for gpu in state.devices), *(switch.pci_bus_id for switch in state.switches)]
    taken = [bridge.pci_bus_id for bridge in state.node_shape.topology.bridges]
    assert len({*ends, *taken}) == len(ends) + len(taken)


@pytest.mark.parametrize(
    ("bridges", "complaint"),
    [
        pytest.param(
            '        - {bdf: "0000:00:01.0", port: pex, bus: 7}',
            "bridges[0].port: must be one of",
            id="unknown port",
        ),
        pytest.param(
            '        - {bdf: "0000:05:00.0", port: pex880xx, bus: 7}',
            'bridges[0].bdf: "0000:05:00.0" is on a bus that no bridge of pci0000:00 has',
            id="nothing leads there",
        ),
        pytest.param(
            CHAIN + '        - {bdf: "0000:00:02.0", port: amd-root-port-1483, bus: 7}',
            "bridges[3].bus: 0x07 is the bus below 0000:06:00.0 already",
            id="two for one bus",
        ),
        pytest.param(
            '        - {bdf: "0000:00:01.0", port: amd-root-port-1483, bus: 0}',
            "bridges[0].bus: must be a bus after the bridge's own, 0x00, not 0x00",
            id="bus before its own",
        ),
        pytest.param(
            '        - {bdf: "0000:07:00.0", port: amd-root-port-1483, bus: 8}',
            "bridges[0].bdf: bus id 0000:07:00.0 is already that of devices[0]",
            id="a device's place",
        ),
        pytest.param('        - {bdf: "0000:00:01.0", bus: 7}', "bridges[0].port: is missing", id="no port"),
    ],
)
def test_a_wrong_bridge_is_refused(bridges: str, complaint: str) -> None:
    found = faults(HEAD + ROOT + bridges)
    assert any(f"pcie_topology.root_complexes[0].{complaint}" in fault for fault in found), found


@pytest.mark.parametrize("gpu", ["host_driver_version: 550.163.012", "host_driver_branch: r550_00_long"])
def test_what_does_not_fit_into_a_vgpus_record_is_refused(gpu: str) -> None:
    version = "" if "version" in gpu else "host_driver_version: '1', "
    found = faults(HEAD + f"\ndevices: [{{vgpu_guest: {{{version}{gpu}}}}}]")
    assert any("must be 10 bytes at the most" in fault for fault in found), found
