"""The real nvidia-smi 550 says of a node of each board what the real node's own said: every leaf that both know."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import pytest

from simnode.profile import boards
from tests.boards.leaves import Capture, load, parse
from tests.conftest import ORDINARY, Obtain
from tests.consumers.conftest import Node

pytestmark = pytest.mark.consumer

UUID = {"uuid": "UUIDs are made up, here and in the tables"}
DRIVER = {"gsp_firmware_version": "the firmware is the driver's, and the driver here is 550"}
SINCE_570 = {
    "gpu_reset_status/reset_required": "570 calls it deprecated",
    "gpu_reset_status/drain_and_reset_recommended": "570 calls it deprecated",
}
SINCE_580 = {"display_mode": "580 calls it deprecated"}
SINCE_595 = {
    "gpu_power_readings/power_state": "595 calls it deprecated",
    "module_power_readings/power_state": "595 calls it deprecated",
    "applications_clocks/graphics_clock": "595 calls it deprecated",
    "applications_clocks/mem_clock": "595 calls it deprecated",
    "default_applications_clocks/graphics_clock": "595 calls it deprecated",
    "default_applications_clocks/mem_clock": "595 calls it deprecated",
}
# These two alone describe the model.
BLACKWELL = {"product_architecture": "550 is older than Blackwell and prints Unknown"}
MANY_CLOCKS = {"supported_clocks/3996 MHz": "550 has room for 256 graphics clocks and prints Unknown Error"}
DIFFERENT = {
    "a100": UUID | DRIVER | SINCE_570,
    "h100": UUID | DRIVER | SINCE_580,
    "b200": UUID | DRIVER | SINCE_580 | BLACKWELL,
    "gb200": UUID | DRIVER | SINCE_580 | BLACKWELL | MANY_CLOCKS,
    "gb300": UUID | DRIVER | SINCE_580 | BLACKWELL | MANY_CLOCKS,
    "l40s": UUID | DRIVER | SINCE_580 | SINCE_595,
    "t4": UUID | DRIVER | SINCE_580 | SINCE_595,
}
COMMON = {"a100": 184, "h100": 182, "b200": 182, "gb200": 181, "gb300": 181, "l40s": 182, "t4": 166}


Show = Callable[[str], Capture]


@pytest.fixture(scope="module")
def shown(program: Obtain) -> Show:
    """What the real program prints on a node of a board with its own driver; each board has one node."""
    real = program("nvidia-smi-550")
    node = Node(ORDINARY if os.geteuid() == 0 else os.geteuid())

    @cache
    def show(board: str) -> Capture:
        options = ("--board", board, "--driver-version", real.version)
        return parse(node.output(real.path, "-q", "-x", options=options))

    return show


@pytest.mark.parametrize("board", boards())
def test_every_leaf_that_both_know_is_the_real_nodes(board: str, shown: Show) -> None:
    """GPU by GPU; what differs is named above with its reason, and nothing is named that does not differ."""
    real, ours = load(board), shown(board)
    for theirs, mine in zip(real.gpus, ours.gpus, strict=False):
        common = theirs.keys() & mine.keys()
        different = {path: (theirs[path], mine[path]) for path in common if theirs[path] != mine[path]}
        assert different.keys() == DIFFERENT[board].keys(), different
        assert len(common) == COMMON[board]


def test_the_made_up_gpus_are_like_the_captured_one(shown: Show) -> None:
    """What is each one's own apart."""
    own = {"@id", "uuid", "serial", "minor_number", "board_id", "gpu_module_id", "pci/pci_bus", "pci/pci_device"}
    own |= {"pci/pci_bus_id", "ecc_errors/aggregate/dram_correctable"}
    for board in ("a100", "l40s", "t4"):
        first, *others = shown(board).gpus
        for other in others:
            assert {path for path in first if other[path] != first[path]} <= own
