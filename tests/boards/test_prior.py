"""Profiles that others wrote for these boards load as they are, and a node of each runs the real nvidia-smi."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simnode.profile import Options, boards, compile_state, load_text
from simnode.profile.faults import Fault
from simnode.state import State
from tests.boards.leaves import parse
from tests.boards.prior import columns, document
from tests.conftest import Obtain
from tests.consumers.conftest import Node

BOARDS = columns()
MIB = 1 << 20


def compiled(board: str, unknown: list[Fault] | None = None, addition: str = "") -> State:
    """The node that the profile describes."""
    return compile_state(load_text((document(board) + addition).encode(), "p.yaml", unknown), Options(), {})


def test_there_is_one_for_every_board() -> None:
    assert sorted(BOARDS) == list(boards())


@pytest.mark.parametrize("board", BOARDS)
def test_it_loads_without_a_word(board: str) -> None:
    unknown: list[Fault] = []
    state = compiled(board, unknown)
    said = BOARDS[board]
    assert not unknown
    assert [device.pci_bus_id[5:7] for device in state.devices] == said["buses"].lower().split()
    assert [device.serial for device in state.devices] == [f"{said['serial']}{index}" for index in range(8)][
        : len(state.devices)
    ]
    links = int(said["nvlink.links_per_gpu"] or 0) if said["switches"] else 0
    assert {len(device.links) for device in state.runtime.devices} == {links}


@pytest.mark.parametrize("board", BOARDS)
def test_a_key_that_nobody_knows_is_told_and_changes_nothing(board: str) -> None:
    unknown: list[Fault] = []
    state = compiled(board, unknown, "warranty: {until: 2031}\n")
    assert [fault.key for fault in unknown] == ["warranty"]
    assert state.runtime == compiled(board).runtime


@pytest.mark.consumer
@pytest.mark.parametrize("board", BOARDS)
def test_a_node_of_it_runs_the_real_program(board: str, program: Obtain, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(document(board))
    options = ("--profile", str(profile))
    done = Node(os.geteuid()).run(program("nvidia-smi-550").path, "-q", "-x", options=options)
    assert done.returncode == 0, done.stderr
    shown, said = parse(done.stdout), BOARDS[board]
    assert len(shown.gpus) == int(said["system.num_devices"])
    for index, leaves in enumerate(shown.gpus):
        clocks = said["device_defaults.supported_clocks.memory_clocks[].graphics_clocks"].strip("[]").split(", ")
        memory = said["device_defaults.supported_clocks.memory_clocks[].freq_mhz"]
        expected = {
            "product_name": said["device_defaults.name"],
            "uuid": f"{said['uuid']}{index}",
            "vbios_version": said["device_defaults.vbios_version"],
            "pci/pci_device_id": said["device_defaults.pci.device_id"].removeprefix("0x"),
            "fb_memory_usage/total": f"{int(said['device_defaults.memory.total_bytes']) // MIB} MiB",
            "gpu_power_readings/max_power_limit": f"{int(said['device_defaults.power.max_limit_mw']) / 1000:.2f} W",
            "max_clocks/mem_clock": f"{said['device_defaults.clocks.memory_max']} MHz",
            f"supported_clocks/{memory} MHz": " ".join(reversed(clocks)),
        }
        assert {path: leaves.get(path) for path in expected} == expected
        assert 10 <= int(leaves["utilization/gpu_util"].removesuffix(" %")) <= 45  # their dynamic_metrics
