"""NVML's nearness of two GPUs follows from the bridges that sysfs shows above them."""

from __future__ import annotations

import pytest

from simnode.nvml.topology import places
from tests.pcibus.trees import BOARDS, board, node

INTERNAL, SWITCHES = 0, 20
LEVELS = {
    "a100": [0, 10, 50, 50, 50, 50, 50, 50],
    "b200": [0, 10, 30, 30, 50, 50, 50, 50],
    "gb200": [0, 40, 50, 50],
    "gb300": [0, 40, 50, 50],
    "h100": [0, 30, 30, 30, 50, 50, 50, 50],
    "l40s": [0, 40, 40, 40, 50, 50, 50, 50],
    "t4": [0, 40, 50, 50],
}


@pytest.mark.parametrize("name", BOARDS)
def test_gpus_below_one_switch_are_nearer_than_those_of_one_root(name: str) -> None:
    assert list(places(board(name))[0].ancestor[: len(LEVELS[name])]) == LEVELS[name]


def test_gpus_of_a_switch_and_of_one_behind_it_are_less_near() -> None:
    state = node(
        """
devices: [{pci: {bus_id: "0000:07:00.0"}}, {pci: {bus_id: "0000:0a:00.0"}}]
pcie_topology:
  root_complexes:
    - id: "pci0000:00"
      devices: ["0000:07:00.0", "0000:0a:00.0"]
      bridges:
        - {bdf: "0000:00:01.0", port: amd-root-port-1483, bus: 5}
        - {bdf: "0000:05:00.0", port: pex880xx, bus: 6}
        - {bdf: "0000:06:00.0", port: pex880xx, bus: 7}
        - {bdf: "0000:06:01.0", port: pex880xx, bus: 8}
        - {bdf: "0000:08:00.0", port: pex880xx, bus: 9}
        - {bdf: "0000:09:00.0", port: pex880xx, bus: 10}
"""
    )
    assert list(places(state)[0].ancestor[:2]) == [INTERNAL, SWITCHES]


def test_nearness_is_mutual() -> None:
    rows = [list(place.ancestor) for place in places(board("b200"))]
    assert all(rows[i][j] == rows[j][i] for i in range(8) for j in range(8))
