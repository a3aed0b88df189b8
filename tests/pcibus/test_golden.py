"""One function of each kind, to the byte, checked by hand against the kernel's ABI documents and the specifications.

Documentation/ABI/testing/sysfs-bus-pci has the attributes, drivers/pci/pci-sysfs.c their forms; uapi/linux/pci_regs.h
the registers. Line by line in the GPU's config space: ids, command and class; three 64-bit prefetchable registers;
power management at 40, MSI at 48, PCI Express at 60 with the link at 6c (can), 72 (is) and 8c, MSI-X at b0, AER at 1b8.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.state import State
from tests.pcibus.trees import GUEST, board, node, shown, tree

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize(
    ("name", "state", "address"),
    [
        ("gpu", board("h100"), "0000:53:00.0"),
        ("switch", board("h100"), "0000:cf:00.0"),
        ("bridge", board("a100"), "0000:02:04.0"),
        ("vgpu", node(GUEST), "0000:01:00.0"),
    ],
    ids=["gpu", "switch", "bridge", "vgpu"],
)
def test_a_function_is_as_a_kernel_shows_it(name: str, state: State, address: str) -> None:
    assert shown(tree(state), address) == (GOLDEN / f"{name}.txt").read_text()
