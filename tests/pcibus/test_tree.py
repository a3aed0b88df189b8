"""What is on the bus of each board, where it lies, and that every link leads there."""

from __future__ import annotations

import posixpath
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.host import Directory, Link, TreeError
from simnode.nvml.topology import cpus
from simnode.state import Facts, State
from tests.examples import examples
from tests.pcibus.trees import BOARDS, addresses, board, bus, directory_of, node, read, tree

GPU, SWITCH, BRIDGE = b"0x030200\n", b"0x068000\n", b"0x060400\n"
CLASSES = {
    "a100": {GPU: 8, SWITCH: 6, BRIDGE: 24},
    "b200": {GPU: 8, BRIDGE: 16},
    "gb200": {GPU: 4, BRIDGE: 4},
    "gb300": {GPU: 4, BRIDGE: 12},
    "h100": {GPU: 8, SWITCH: 4, BRIDGE: 30},
    "l40s": {GPU: 8, BRIDGE: 8},
    "t4": {GPU: 4, BRIDGE: 3},
}
DRIVERS = {GPU: "nvidia", SWITCH: "nvidia-nvswitch", BRIDGE: "pcieport"}
STATES = st.builds(board, st.sampled_from(BOARDS), st.none() | st.integers(0, 64))


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_has_its_functions(name: str) -> None:
    made = tree(board(name))
    assert Counter(read(made, address, "class") for address in addresses(made)) == CLASSES[name]


@pytest.mark.parametrize("name", BOARDS)
def test_every_gpu_has_the_identity_that_nvml_tells(name: str) -> None:
    state = board(name)
    made = tree(state)
    for device in state.devices:
        vendor, identity = device.pci_device_id & 0xFFFF, device.pci_device_id >> 16
        assert read(made, device.pci_bus_id, "vendor") == f"0x{vendor:04x}\n".encode()
        assert read(made, device.pci_bus_id, "device") == f"0x{identity:04x}\n".encode()


@pytest.mark.parametrize("name", BOARDS)
def test_every_function_has_the_numa_node_and_the_cpus_of_its_root(name: str) -> None:
    state = board(name)
    made = tree(state)
    for root in state.node_shape.topology.root_complexes:
        for address in (at for at in addresses(made) if f"/{root.id}/" in directory_of(made, at)):
            assert read(made, address, "numa_node") == f"{root.numa_node}\n".encode()
            assert read(made, address, "local_cpulist") == f"{root.cpu_affinity}\n".encode()
            mask = int(read(made, address, "local_cpus").decode().replace(",", ""), 16)
            assert {at for at in range(mask.bit_length()) if mask >> at & 1} == cpus(root.cpu_affinity)


@examples(8)
@given(STATES)
def test_every_link_of_the_tree_leads_to_something_in_it(state: State) -> None:
    made = tree(state)
    for surface in made:
        if isinstance(surface, Link):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(surface.path), surface.target))
            assert target in made.directories or target in made, surface


@examples(8)
@given(STATES)
def test_a_function_is_found_by_its_bus_and_by_its_driver_alike(state: State) -> None:
    made = tree(state)
    for address in addresses(made):
        driver = DRIVERS[read(made, address, "class")]
        there = made.get(f"sys/bus/pci/drivers/{driver}/{address}")
        assert isinstance(there, Link)
        place = posixpath.normpath(posixpath.join("sys/bus/pci/drivers", driver, there.target))
        assert place == directory_of(made, address)
        back = made.get(f"{place}/driver")
        assert isinstance(back, Link)
        assert posixpath.normpath(posixpath.join(place, back.target)) == f"sys/bus/pci/drivers/{driver}"


@examples(8)
@given(STATES)
def test_every_device_of_the_state_is_on_the_bus_once(state: State) -> None:
    made = tree(state)
    ends = [address for address in addresses(made) if read(made, address, "class") != BRIDGE]
    wanted = [device.pci_bus_id for device in state.devices] + [switch.pci_bus_id for switch in state.switches]
    assert sorted(ends) == sorted(wanted)


@examples(8)
@given(STATES)
def test_a_function_lies_below_the_bridge_that_has_its_bus_and_else_on_its_roots_own(state: State) -> None:
    made = tree(state)
    for address in addresses(made):
        *_, above, own = directory_of(made, address).split("/")
        assert own == address
        number = int(address.split(":")[1], 16)
        if above.startswith("pci"):
            assert above == f"pci{address[:7]}"
        else:
            assert read(made, above, "secondary_bus_number") == f"{number}\n".encode()
            assert int(read(made, above, "subordinate_bus_number")) >= number


def test_a_gpu_that_no_root_holds_is_on_a_root_of_its_own_without_a_numa_node() -> None:
    state = node(
        """
devices: [{pci: {bus_id: "0000:07:00.0"}}, {pci: {bus_id: "0001:0f:00.0"}}]
pcie_topology:
  root_complexes: [{id: "pci0000:00", numa_node: 1, cpu_affinity: 8-15, devices: ["0000:07:00.0"]}]
"""
    )
    made = tree(state)
    assert directory_of(made, "0001:0f:00.0") == "sys/devices/pci0001:0f/0001:0f:00.0"
    assert read(made, "0001:0f:00.0", "numa_node") == b"-1\n"
    assert read(made, "0001:0f:00.0", "local_cpulist") == b"8-15\n"


def test_without_devices_there_is_nothing_but_the_directories_that_are_mounted() -> None:
    made = tree(board("b200", 0))
    assert [surface.path for surface in made if isinstance(surface, Directory)] == [
        "proc/bus/pci",
        "sys/bus/pci",
        "sys/bus/pci/devices",
        "sys/bus/pci/drivers",
        "sys/devices",
    ]
    assert made.paths == (*made.paths[:1], "proc/bus/pci/devices", *made.paths[2:])
    assert len(made) == 6


def test_proc_lists_every_function_with_the_driver_it_has() -> None:
    made = tree(board("a100"))
    lines = made.get("proc/bus/pci/devices").content.decode().splitlines()  # type: ignore[union-attr]
    assert len(lines) == len(addresses(made))
    first = next(line.split("\t") for line in lines if line.startswith("0600\t"))
    sizes = [1 << 24, 1 << 36, 0, 1 << 25, 0, 0, 0]
    assert first[:3] == ["0600", "10de20b0", "fe"]
    assert [int(size, 16) for size in first[10:17]] == sizes
    assert first[17:] == ["nvidia"]


def test_what_devices_read_changes_nothing_and_costs_nothing() -> None:
    simulator, state = bus(), board("h100")
    before = simulator.tree(state, Facts())
    read_otherwise = msgspec.structs.replace(state, runtime=msgspec.structs.replace(state.runtime, devices=()))
    assert simulator.tree(read_otherwise, Facts()) is before


def test_a_change_of_one_gpu_keeps_everything_else() -> None:
    simulator = bus()
    before = simulator.tree(board("h100"), Facts())
    state = board("h100")
    devices = (msgspec.structs.replace(state.devices[0], off_bus=True), *state.devices[1:])
    after = simulator.tree(msgspec.structs.replace(state, devices=devices), Facts())
    changed = {surface.path for surface in after if surface != before.get(surface.path)}
    place = directory_of(after, state.devices[0].pci_bus_id)
    assert changed == {f"{place}/{name}" for name in ("config", "current_link_speed", "current_link_width")}


@pytest.mark.parametrize("address", ["../../etc:00:00.0", "0000:07:00", "0000:07:00.0/..", "", "0000:0G:00.0"])
def test_what_is_no_address_becomes_no_path(address: str) -> None:
    state = board("t4")
    devices = (msgspec.structs.replace(state.devices[0], pci_bus_id=address), *state.devices[1:])
    with pytest.raises(TreeError, match="is no PCI address"):
        bus().tree(msgspec.structs.replace(state, devices=devices), Facts())
