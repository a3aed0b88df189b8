"""The PCI bus as lspci and hwloc show it inside a node: every board as a real machine would be shown.

Names are those of Debian 12's pci.ids, which has none for boards after mid-2023.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from simnode.profile import Options, compile_state, load_board
from simnode.state import State
from tests.conftest import Obtain
from tests.consumers import numa
from tests.consumers.conftest import Ended, Node
from tests.consumers.expected import gpus
from tests.consumers.fetch import Fetched
from tests.consumers.test_monitors import with_libraries

EXPECTED = Path(__file__).with_name("lspci")
BOARDS = ("a100", "b200", "gb200", "gb300", "h100", "l40s", "t4")
DRIVERS = {"3D controller": "nvidia", "PCI bridge": "pcieport", "Bridge": "nvidia-nvswitch"}
WRONG = ("<chain", "!!!", "<access denied>", "<ignored>", "<unassigned>", "<error", "(rev ff)", "[disabled] [size")
# What it says on any machine that has no modules for its kernel
NO_MODULES = "lspci: Unable to load libkmod resources"
COMPARE = """
import pynvml as nvml, pathlib
nvml.nvmlInit()
for at in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(at)
    pci = nvml.nvmlDeviceGetPciInfo(gpu)
    place = pathlib.Path("/sys/bus/pci/devices", f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0")
    def read(name): return (place / name).read_text().strip()
    assert int(read("device"), 16) << 16 | int(read("vendor"), 16) == pci.pciDeviceId
    assert int(read("subsystem_device"), 16) << 16 | int(read("subsystem_vendor"), 16) == pci.pciSubSystemId
    assert int(read("current_link_width")) == nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)
    assert [1 << int(read("numa_node"))] == nvml.nvmlDeviceGetMemoryAffinity(gpu, 1, nvml.NVML_AFFINITY_SCOPE_NODE)[:]
    words = nvml.nvmlDeviceGetCpuAffinity(gpu, 8)
    mask = sum(word << 64 * at for at, word in enumerate(words))
    assert mask == int(read("local_cpus").replace(",", ""), 16)
print("agreed", at + 1)
"""


def board(name: str) -> State:
    """The node as it is compiled."""
    return compile_state(load_board(name), Options(), {})


def lspci(program: Fetched, *options: str) -> list[str | Path]:
    """The command, with the names of its own release."""
    return [*with_libraries(program), "-i", next(program.root.glob("usr/share/misc/pci.ids")), *options]


def quiet(ended: Ended) -> str:
    """What it printed, having nothing to complain of."""
    complaints = [line for line in ended.errors.splitlines() if not line.startswith(NO_MODULES)]
    assert (ended.status, complaints) == (0, [])
    return ended.output


def lstopo(program: Fetched, *options: str) -> list[str | Path]:
    """The command, with its plugin for NVML."""
    plugins = next(program.root.glob("usr/lib/*/hwloc"))
    return ["env", f"HWLOC_PLUGINS_PATH={plugins}", *with_libraries(program), *options, "--of", "xml"]


@dataclass(frozen=True)
class Shown:
    """What each program showed of a board, all in one node, which costs more than they do."""

    board: str
    tree: Ended
    drivers: Ended
    details: Ended
    topology: Ended
    agreed: Ended


@pytest.fixture(scope="module", params=BOARDS)
def shown(request: pytest.FixtureRequest, ordinary: Node, program: Obtain) -> Shown:
    """Every board in its turn."""
    commands: list[list[str | Path]] = [
        *(lspci(program("lspci"), *options) for options in (("-nn", "-tv"), ("-D", "-k"), ("-D", "-vv"))),
        lstopo(program("lstopo"), "--whole-io"),
        [sys.executable, "-c", COMPARE],
    ]
    return Shown(request.param, *ordinary.several(commands, options=("--board", request.param)))


@pytest.fixture(scope="module")
def h100(anywhere: Node, program: Obtain) -> tuple[bool, Ended, Ended]:
    """Whether the node is without namespaces, and what lspci and lstopo show in it."""
    commands = [lspci(program("lspci"), "-D", "-d", "10de:"), lstopo(program("lstopo"))]
    listed, topology = anywhere.several(commands)
    return anywhere.fallback, listed, topology


def test_lspci_shows_the_board(shown: Shown) -> None:
    """The tree with its ids, a driver for every function, and nothing in any capability that lspci minds."""
    tree, drivers, details = map(quiet, (shown.tree, shown.drivers, shown.details))
    assert tree == (EXPECTED / f"{shown.board}.txt").read_text()
    for paragraph in re.split(r"\n(?=\S)", drivers.strip()):
        kind = paragraph.partition(" ")[2].partition(":")[0]
        assert f"Kernel driver in use: {DRIVERS[kind]}" in paragraph, paragraph
    assert [line for line in details.splitlines() if any(word in line for word in WRONG)] == []
    slow = [line for line in details.splitlines() if "LnkSta:" in line and "downgraded" in line]
    assert bool(slow) == (shown.board in {"gb200", "l40s", "t4"}), slow


def test_lspci_tells_of_a_gpu_that_fell_off_the_bus(ordinary: Node, program: Obtain) -> None:
    fallen = ("--board", "t4", "--set", "failure.mode=fallen_off_bus")
    (ended,) = ordinary.several([lspci(program("lspci"), "-vv", "-d", "10de:")], options=fallen)
    assert quiet(ended).count("!!! Unknown header type 7f") == 4


def test_as_root_it_is_the_same(h100: tuple[bool, Ended, Ended]) -> None:
    """Also where the node has no namespaces: there lspci shows the machine."""
    fallback, listed, _ = h100
    assert len(quiet(listed).splitlines()) == (0 if fallback else 12)


def test_lstopo_shows_every_gpu(h100: tuple[bool, Ended, Ended]) -> None:
    """hwloc's NVML plugin: nvml0 and so on with their names, serials and UUIDs."""
    found = {}
    for element in ElementTree.fromstring(h100[2].output).iter("object"):
        if element.get("subtype") == "NVML":
            infos = {info.get("name"): info.get("value") for info in element.findall("info")}
            found[element.get("name")] = (infos["GPUVendor"], infos["GPUModel"], infos["NVIDIAUUID"])
    assert found == {f"nvml{gpu.index}": ("NVIDIA Corporation", gpu.name, gpu.uuid) for gpu in gpus()}


def test_lstopo_hangs_every_gpu_below_its_pci_device(shown: Shown) -> None:
    """So PCI and NVML agree on who is where: nvml0 and so on in NVML's order, below as many bridges as there are."""
    document = ElementTree.fromstring(shown.topology.output)
    above = {child: parent for parent in document.iter("object") for child in parent.findall("object")}
    state = board(shown.board)
    depth = {bridge.pci_bus_id for bridge in state.node_shape.topology.bridges}
    for device in state.devices:
        (found,) = (each for each in above if each.get("name") == f"nvml{device.index}")
        (uuid,) = (each.get("value") for each in found.findall("info") if each.get("name") == "NVIDIAUUID")
        assert uuid == device.uuid
        assert above[found].get("pci_busid") == device.pci_bus_id
        bridges = []
        while (found := above[found]).get("type") in ("PCIDev", "Bridge"):
            bridges.append(found.get("pci_busid"))
        assert {address for address in bridges[1:] if address} <= depth
        assert len([address for address in bridges[1:] if address]) == _depth(state, device.pci_bus_id)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a node another machine's CPUs")
@pytest.mark.parametrize("name", ["a100", "gb300", "h100"])
def test_on_the_boards_own_machine_lstopo_hangs_gpus_below_their_numa_nodes(
    program: Obtain, tmp_path: Path, name: str
) -> None:
    found, state = program("lstopo"), board(name)
    numa.build(tmp_path, state)
    plugins = f"HWLOC_PLUGINS_PATH={next(found.root.glob('usr/lib/*/hwloc'))}"
    command = ["env", plugins, *with_libraries(found), "--disallowed", "--whole-io", "--of", "xml"]
    script = f'mount --bind {tmp_path} /sys/devices/system && exec "$@"'
    done = Node(0).run("sh", "-c", script, "sh", *command, options=("--board", name))
    assert "invalid information" not in done.stderr
    document = ElementTree.fromstring(done.stdout)
    above = {child: parent for parent in document.iter("object") for child in parent.findall("object")}
    near = {}
    for shown in [each for each in above if each.get("subtype") == "NVML"]:
        place = above[shown]
        while place.get("type") in ("PCIDev", "Bridge"):
            place = above[place]
        numbers = [each.get("os_index") for each in place.iter("object") if each.get("type") == "NUMANode"]
        near[(shown.get("name") or "").removeprefix("nvml")] = numbers
    roots = {bdf: root.numa_node for root in state.pci_topology() for bdf in root.device_bdfs}
    assert near == {str(device.index): [str(roots[device.pci_bus_id])] for device in state.devices}


def _depth(state: State, address: str) -> int:
    """How many bridges are above an address."""
    above = {(each.pci_bus_id[:4], each.secondary): each.pci_bus_id for each in state.node_shape.topology.bridges}
    count = 0
    while (bridge := above.get((address[:4], int(address[5:7], 16)))) is not None:
        address, count = bridge, count + 1
    return count


def test_nvml_and_sysfs_agree_on_every_gpu(shown: Shown) -> None:
    """Address, ids, link, NUMA node and CPUs, as a Python program reads them from both."""
    assert shown.agreed.output == f"agreed {len(board(shown.board).devices)}\n", shown.agreed.errors
