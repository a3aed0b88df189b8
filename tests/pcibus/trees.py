"""The trees that the PCI bus's tests look at: of built-in boards, and as text."""

from __future__ import annotations

import functools
import posixpath

from simnode.host import Directory, File, Host, Link, Tree
from simnode.profile import Options, compile_state, load_board, load_text
from simnode.simulators.pcibus import PCIBus
from simnode.state import Facts, State

BOARDS = ("a100", "b200", "gb200", "gb300", "h100", "l40s", "t4")
GUEST = """
devices:
  - {index: 0, vgpu_guest: {host_driver_version: "550.90.05", host_driver_branch: r550_00}}
"""
SMALL = """\
version: "1.0"
system: {driver_version: 550.163.01, num_devices: 2}
device_defaults:
  name: NVIDIA A100-SXM4-40GB
  architecture: ampere
  memory: {total_bytes: 42949672960}
  bar1_memory: {total_bytes: 68719476736}
  pci: {device_id: 0x20B010DE, subsystem_id: 0x134F10DE}
  pcie: {max_link_gen: 4, max_link_width: 16}
"""


@functools.cache
def board(name: str, gpus: int | None = None, *overrides: str) -> State:
    """A node of a built-in board."""
    return compile_state(load_board(name), Options(gpus=gpus, overrides=overrides), {})


def node(text: str, gpus: int | None = None) -> State:
    """A node of a small profile with this added."""
    return compile_state(load_text((SMALL + text).encode(), "p.yaml"), Options(gpus), {})


def bus() -> PCIBus:
    """The simulator; it stages nowhere."""
    return PCIBus(Host("/nonexistent", boot_id="boot"))


@functools.cache
def tree(state: State) -> Tree:
    """The tree of a State."""
    return bus().tree(state, Facts())


def directory_of(tree: Tree, address: str) -> str:
    """Where a function lies, by its link on the bus."""
    link = tree.get(f"sys/bus/pci/devices/{address}")
    assert isinstance(link, Link)
    return posixpath.normpath(posixpath.join("sys/bus/pci/devices", link.target))


def read(tree: Tree, address: str, name: str) -> bytes:
    """What a file of a function holds."""
    file = tree.get(f"{directory_of(tree, address)}/{name}")
    assert isinstance(file, File), name
    return file.content


def addresses(tree: Tree) -> list[str]:
    """Every function on the bus."""
    return [path.rpartition("/")[2] for path in tree.paths if path.startswith("sys/bus/pci/devices/")]


def shown(tree: Tree, address: str) -> str:
    """A function as text: where it lies, each file with its mode and content, each link, and config space in hex."""
    place = directory_of(tree, address)
    lines = [place]
    for surface in tree:
        above, _, name = surface.path.rpartition("/")
        if above != place:
            continue
        if isinstance(surface, Link):
            lines.append(f"{name} -> {surface.target}")
        elif isinstance(surface, File) and name != "config":
            first, *rest = surface.content.decode().splitlines()
            lines += [f"{name} {surface.mode:04o}: {first}", *(f"    {line}" for line in rest)]
        elif isinstance(surface, File):
            lines += [f"config {surface.mode:04o}: {len(surface.content)} bytes, lines of zeros left out"]
            lines += _hex(surface.content)
        else:
            assert not isinstance(surface, Directory)
    return "\n".join(lines) + "\n"


def _hex(content: bytes) -> list[str]:
    rows = ((at, content[at : at + 16]) for at in range(0, len(content), 16))
    return [f"    {at:03x}: {row.hex(' ')}" for at, row in rows if any(row)]
