"""The kinds of PCI bridges that stand between a root complex and a GPU, by the words that profiles use for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class Port(Struct, frozen=True):
    """A kind of bridge: ids as `device << 16 | vendor`, and its link at most."""

    device_id: int
    subsystem_id: int
    revision: int
    link_gen: int
    link_width: int = 16


PORTS: Mapping[str, Port] = MappingProxyType(
    {
        "intel-skylake-root-port": Port(0x20308086, 0, 0x07, 3),
        "intel-root-port-352a": Port(0x352A8086, 0, 0x04, 5),
        "intel-root-port-352b": Port(0x352B8086, 0, 0x04, 5),
        "amd-root-port-1483": Port(0x14831022, 0x14531022, 0x00, 4),
        "grace-root-port": Port(0x22B110DE, 0, 0x00, 5),
        "grace-root-port-gen6": Port(0x22B110DE, 0, 0x00, 6),
        "pex880xx": Port(0xC0101000, 0xA0961000, 0xB0, 4),
        "pex890xx": Port(0xC0301000, 0x100B1000, 0xB0, 5),
        "switchtec-gen4": Port(0x412811F8, 0, 0x00, 4),
        "connectx-8-bridge": Port(0x197C15B3, 0, 0x00, 6),
    }
)
"""What boards have between a root complex and a GPU (board facts, bridges and switches)."""
