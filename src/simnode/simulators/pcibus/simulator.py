"""The simulator of the PCI bus: a tree below `sys/` and `proc/` that can stand in the place of the kernel's own.

What is mounted over the kernel's directories is staged as directories that keep their inode. A GPU that a fault took
off the bus is still listed, as the kernel remembers it, but its config space answers nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from simnode.host import Directory, File, Host, Link, Surface, Tree, TreeError
from simnode.simulators import TreeSimulator
from simnode.simulators.pcibus.attributes import READ_ONLY, READ_WRITE, attributes, proc_line
from simnode.simulators.pcibus.config import config
from simnode.simulators.pcibus.functions import Function, functions, path_of
from simnode.simulators.pcibus.resources import Resources, resources
from simnode.state import Facts, State

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")

DEVICES, BUS, PROC = "sys/devices", "sys/bus/pci", "proc/bus/pci"


class PCIBus(TreeSimulator):
    """Stages the bus."""

    name = "pcibus"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._made: tuple[object, Tree] | None = None
        self._known: dict[str, _Staged] = {}

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """All surfaces of `state`, the very same tree as long as what it is made from is equal."""
        wanted = (state.devices, state.switches, state.node_shape.topology)
        if self._made is None or self._made[0] != wanted:
            self._made = wanted, Tree(self._surfaces(state))
        return self._made[1]

    def _surfaces(self, state: State) -> Iterator[Surface]:
        _check(state)
        found = functions(state)
        placed = resources(found)
        self._known = {address: self._staged_as(address, found, placed[address]) for address in sorted(found)}
        yield from (Directory(path) for path in (DEVICES, BUS, f"{BUS}/devices", f"{BUS}/drivers", PROC))
        for each in self._known.values():
            yield from each.surfaces
        lines = (proc_line(each.function, each.resources) for each in self._known.values())
        yield File(f"{PROC}/devices", "".join(lines).encode(), READ_ONLY)

    def _staged_as(self, address: str, found: Mapping[str, Function], placed: Resources) -> _Staged:
        """What a function is staged as: if it is where and what it was, the very same surfaces."""
        function, path = found[address], path_of(found[address], found)
        known = self._known.get(address)
        if known is not None and (known.function, known.resources, known.path) == (function, placed, path):
            return known
        return _Staged(function, placed, path, tuple(_of_one(function, placed, path)))


class _Staged(Struct, frozen=True):
    """A function, where it is, and all its surfaces."""

    function: Function
    resources: Resources
    path: str
    surfaces: tuple[Surface, ...]


def _of_one(function: Function, placed: Resources, path: str) -> Iterator[Surface]:
    for name, text, mode in attributes(function, placed):
        yield File(f"sys/{path}/{name}", text.encode(), mode)
    yield File(f"sys/{path}/config", config(function, placed), READ_WRITE)
    yield from _links(function, path)


def _links(function: Function, path: str) -> Iterator[Surface]:
    """What leads from the bus and the driver to a function, and back."""
    up = "../" * path.count("/") + ".."
    driver = f"bus/pci/drivers/{function.driver}"
    yield Link(f"{BUS}/devices/{function.address}", f"../../../{path}")
    yield Link(f"sys/{driver}/{function.address}", f"../../../../{path}")
    yield Link(f"sys/{path}/driver", f"{up}/{driver}")
    yield Link(f"sys/{path}/subsystem", f"{up}/bus/pci")


def _check(state: State) -> None:
    """Raise TreeError for what is no address of a function, or no root complex: they become components of paths."""
    topology = state.node_shape.topology
    addresses = [device.pci_bus_id for device in state.devices] + [switch.pci_bus_id for switch in state.switches]
    for address in (*addresses, *(bridge.pci_bus_id for bridge in topology.bridges)):
        if not _ADDRESS.fullmatch(address):
            raise TreeError(f"{address!r} is no PCI address: want DDDD:BB:DD.F in lower case")
    for root in (*(one.root for one in topology.bridges), *(one.id for one in topology.root_complexes)):
        if not _ROOT.fullmatch(root):
            raise TreeError(f"{root!r} is no PCI root: want pciDDDD:BB in lower case")
