"""What every built-in board is: a whole node, idle and constant, of any size."""

from __future__ import annotations

from collections import Counter

import pytest

from simnode.cli.profile import list_boards
from simnode.nvml.encode import encode
from simnode.profile import Options, boards, compile_state, load_board
from simnode.state import Counter as Counting
from simnode.state import Gauge, State

ALL = ("a100", "b200", "gb200", "gb300", "h100", "l40s", "t4")
GPUS = {"gb200": 4, "gb300": 4, "t4": 4}
LINKS = {
    "a100": (12, 25781, {2}),
    "h100": (18, 26562, {4, 5}),
    "b200": (18, 53125, {9}),
    "gb200": (18, 53125, {1}),
    "gb300": (18, 53125, {1}),
    "l40s": (0, 0, set()),
    "t4": (0, 0, set()),
}
SWITCHES = {
    "a100": ("c4", "c5", "c6", "c7", "c8", "c9"),
    "h100": ("cf", "d0", "d1", "d2"),
}
NUMA = {
    "a100": (3, 3, 1, 1, 7, 7, 5, 5),
    "h100": (0, 0, 0, 0, 1, 1, 1, 1),
    "b200": (0, 0, 0, 0, 1, 1, 1, 1),
    "gb200": (0, 0, 1, 1),
    "gb300": (0, 0, 1, 1),
    "l40s": (0, 0, 0, 0, 1, 1, 1, 1),
    "t4": (0, 0, 1, 1),
}
# How many GPUs of a board have one serial.
SHARED_SERIAL = {"gb200": 2, "gb300": 2}
PCIE_CARDS = ("l40s", "t4")  # each of them is module 1


def node(board: str, gpus: int | None = None) -> State:
    """A node of a board."""
    return compile_state(load_board(board), Options(gpus=gpus), {})


def test_these_are_the_boards(capsys: pytest.CaptureFixture[str]) -> None:
    assert boards() == ALL
    assert list_boards() == 0
    assert capsys.readouterr().out.split() == list(ALL)


@pytest.mark.parametrize("board", ALL)
def test_a_node_has_its_gpus_on_its_numa_nodes(board: str) -> None:
    state = node(board)
    assert len(state.devices) == GPUS.get(board, 8)
    numa = {bdf: root.numa_node for root in state.pci_topology() for bdf in root.device_bdfs}
    assert tuple(numa[device.pci_bus_id] for device in state.devices) == NUMA[board]
    assert all(root.cpu_affinity for root in state.pci_topology())


@pytest.mark.parametrize("board", ALL)
def test_gpus_are_in_the_order_of_their_bus_ids(board: str) -> None:
    buses = [device.pci_bus_id for device in node(board).devices]
    assert buses == sorted(buses)


@pytest.mark.parametrize("board", ALL)
def test_a_board_is_idle_and_constant(board: str) -> None:
    for device in node(board).runtime.devices:
        assert device.load.pattern == "idle"
        assert not device.processes
        for key, value in device.values:
            assert not isinstance(value, Gauge), key
            if isinstance(value, Counting) and key != "power.total_energy_consumption_mj":
                assert (value.idle_rate, value.span_rate) == (0, 0), key


@pytest.mark.parametrize("board", ALL)
def test_links_lead_to_the_switches_of_the_board(board: str) -> None:
    state = node(board)
    count, mbps, per_switch = LINKS[board]
    assert state.fabric.bandwidth_per_link_mbps == mbps
    for device in state.runtime.devices:
        assert len(device.links) == count
        assert all(link.active and link.remote_type == "switch" for link in device.links)
        assert set(Counter(link.remote_index for link in device.links).values()) == per_switch
    buses = tuple(switch.pci_bus_id[5:7] for switch in state.switches)
    assert buses == SWITCHES.get(board, ())


@pytest.mark.parametrize("gpus", [1, 3, 64])
@pytest.mark.parametrize("board", ALL)
def test_a_node_of_any_size_has_no_two_gpus_that_are_one(board: str, gpus: int) -> None:
    state = node(board, gpus)
    assert encode(state)
    identities = [
        {
            "uuid": device.uuid,
            "minor": device.minor_number,
            "bus": device.pci_bus_id,
            **{key: value for key, value in runtime.values if key in ("pdi", "platform.fabric_guid")},
            **{key: value for key, value in runtime.values if key == "platform.module_id" and board not in PCIE_CARDS},
        }
        for device, runtime in zip(state.devices, state.runtime.devices, strict=True)
    ]
    for name in identities[0]:
        assert len({identity[name] for identity in identities}) == gpus, name
    serials = Counter(device.serial for device in state.devices)
    assert set(serials.values()) <= set(range(1, SHARED_SERIAL.get(board, 1) + 1))
    assert len(serials) == -(-gpus // SHARED_SERIAL.get(board, 1))
    listed = node(board).devices
    assert state.devices[: len(listed)] == listed[:gpus]


def test_a_switch_on_the_bus_has_the_buses_of_no_gpu() -> None:
    for board in SWITCHES:
        state = node(board, 64)
        assert not {switch.pci_bus_id for switch in state.switches} & {device.pci_bus_id for device in state.devices}
