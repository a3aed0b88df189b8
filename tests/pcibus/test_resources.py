"""Addresses: aligned, disjoint, and inside the windows of every bridge above."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.state import State
from tests.examples import examples
from tests.pcibus.trees import BOARDS, addresses, board, directory_of, node, read, tree
from tests.profile.documents import faults

WIDE, PREFETCHABLE = 0x100000, 0x2000
MIB, GIB = 1 << 20, 1 << 30
STATES = st.builds(board, st.sampled_from(BOARDS), st.none() | st.integers(1, 64))
REGISTERS = {
    "t4": {0: 16 * MIB, 1: 256 * MIB, 3: 32 * MIB},
    "a100": {0: 16 * MIB, 1: 64 * GIB, 3: 32 * MIB},
    "l40s": {0: 16 * MIB, 1: 64 * GIB, 3: 32 * MIB},
    "h100": {0: 16 * MIB, 2: 128 * GIB, 4: 32 * MIB},
    "b200": {0: 64 * MIB, 2: 256 * GIB, 4: 32 * MIB},
    "gb200": {0: 64 * MIB, 2: 256 * GIB, 4: 32 * MIB},
    "gb300": {0: 64 * MIB, 2: 512 * GIB, 4: 32 * MIB},
}


def lines(state: State, address: str) -> list[tuple[int, int, int]]:
    """First address, last address and flags of each resource."""
    rows = read(tree(state), address, "resource").decode().splitlines()
    return [(int(first, 16), int(last, 16), int(flags, 16)) for first, last, flags in map(str.split, rows)]


@pytest.mark.parametrize("name", BOARDS)
def test_a_gpu_has_the_registers_of_its_board(name: str) -> None:
    state = board(name)
    rows = lines(state, state.devices[0].pci_bus_id)
    assert {at: last - first + 1 for at, (first, last, flags) in enumerate(rows) if flags} == REGISTERS[name]


@examples(6)
@given(STATES)
def test_registers_are_aligned_to_their_size_and_no_two_overlap(state: State) -> None:
    ranges = []
    for address in addresses(tree(state)):
        for first, last, flags in lines(state, address)[:6]:
            if flags:
                assert first % (last - first + 1) == 0
                assert flags & WIDE or last < 1 << 32
                ranges.append((first, last))
    assert all(last < following for (_, last), (following, _) in pairwise(sorted(ranges)))


@examples(6)
@given(STATES)
def test_every_register_lies_in_a_window_of_each_bridge_above_it(state: State) -> None:
    made = tree(state)
    for address in addresses(made):
        above = [part for part in directory_of(made, address).split("/")[3:-1] if ":" in part]
        for first, last, flags in lines(state, address)[:6]:
            for bridge in above if flags else ():
                start, end, window = lines(state, bridge)[15 if flags & PREFETCHABLE else 14]
                assert window
                assert start <= first <= last <= end


def test_bridges_have_four_windows_more_than_others() -> None:
    state = board("h100")
    assert [len(lines(state, address)) for address in ("0000:53:00.0", "0000:cf:00.0", "0000:51:00.0")] == [13, 13, 17]


@pytest.mark.parametrize(
    ("size", "register"),
    [(1, MIB), (65536, MIB), (MIB + 1, 2 * MIB), (1 << 44, 1 << 44)],
    ids=["one byte", "64 KiB", "more than a MiB", "the most"],
)
@pytest.mark.parametrize("name", ["a100", "b200"])
def test_whatever_size_bar1_has_there_is_a_register_for_it(name: str, size: int, register: int) -> None:
    state = board(name, 64, f"bar1_memory.total_bytes={size}", "bar1_memory.used_bytes=0")
    first, last, _ = lines(state, state.devices[-1].pci_bus_id)[2 if name == "b200" else 1]
    assert last - first + 1 == register
    assert last < 1 << 52


def test_a_bar1_beyond_all_addresses_is_refused() -> None:
    complaint = "must be an integer from 0 to 17592186044416, not 17592186044417"
    found = faults("version: '1.0'\ndevice_defaults: {bar1_memory: {total_bytes: 17592186044417}}")
    assert f"p.yaml:2: device_defaults.bar1_memory.total_bytes: {complaint}" in found


def switched(count: int) -> str:
    """So many switches, a GPU between any two."""
    listed = (f'{{bdf: "0000:{2 * at + 1:02x}:00.0", device_id: 0x22A310DE}}' for at in range(count))
    return f"nvlink: {{switches: [{', '.join(listed)}]}}\n"


def test_all_switches_and_gpus_that_there_can_be_lie_below_four_gib() -> None:
    gpus = ", ".join(f'{{pci: {{bus_id: "0000:{2 * at + 2:02x}:00.0"}}}}' for at in range(64))
    state = node(f"{switched(32)}devices: [{gpus}]\n", 64)
    registers = [lines(state, each)[0] for each in addresses(tree(state))]
    assert len(registers) == 96
    assert max(last for _, last, _ in registers) < 1 << 32
    complaint = "is one too many; a node has 32 switches with a device_id at the most"
    assert f"p.yaml:2: nvlink.switches[32].device_id: {complaint}" in faults("version: '1.0'\n" + switched(33))
