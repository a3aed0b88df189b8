"""A fabric state of "auto": what it becomes, for which State and Facts."""

from __future__ import annotations

import struct

import msgspec
import pytest

from simnode.nvml.cells import DEVICE
from simnode.nvml.image import encode
from simnode.state import FabricState, Facts, State
from tests.nvml.nodes import node, runtime

IN_PROGRESS, COMPLETED, NOT_STARTED = 2, 3, 1


def auto(state: str, *, manager: bool) -> State:
    fabric = FabricState(enabled=True, manager_state_dir="/run/x" if manager else "")
    return msgspec.structs.replace(node(*[runtime({"fabric.state": state})] * 2), fabric=fabric)


@pytest.mark.parametrize(
    ("state", "manager", "ready", "expected"),
    [
        ("auto", False, False, COMPLETED),
        ("auto", False, True, COMPLETED),
        ("auto", True, False, IN_PROGRESS),
        ("auto", True, True, COMPLETED),
        ("not_started", True, True, NOT_STARTED),
        ("completed", True, False, COMPLETED),
    ],
    ids=["no manager", "no manager any more", "not ready", "ready", "pinned below", "pinned above"],
)
def test_it_follows_the_fabric_manager(state: str, manager: bool, ready: bool, expected: int) -> None:
    _, *devices = encode(auto(state, manager=manager), Facts.of(fabric_ready=ready))
    for device in devices:
        assert struct.unpack_from("<II", device, DEVICE.offsets["fabric_state"]) == (expected, 0)


def test_without_facts_the_fabric_manager_is_not_ready() -> None:
    assert encode(auto("auto", manager=True)) == encode(auto("auto", manager=True), Facts.of(fabric_ready=False))
