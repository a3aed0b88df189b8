"""Where each bus number of a `pcie_topology` lies, and that a document which contradicts itself there is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.nvml.topology import places
from simnode.profile import Options, ProfileError, compile_state, load_board
from simnode.profile.document import load
from simnode.profile.overrides import load_overrides
from simnode.simulators.pcibus.functions import functions, path_of
from tests.examples import examples
from tests.pcibus.trees import BOARDS, board, directory_of, node, read, tree
from tests.profile.documents import faults

HEAD = "version: '1.0'\ndevice_defaults: {name: A, architecture: ampere, memory: {total_bytes: 1}, pci: {device_id: 1}}"
ROOTS = HEAD + "\nsystem: {driver_version: 550.163.01}\npcie_topology: {root_complexes: [%s]}\n"


def root(name: str, devices: str = "", *bridges: tuple[str, int]) -> str:
    """A root complex with devices and bridges (address and bus), all of domain 0."""
    listed = ", ".join(f'{{bdf: "0000:{address}", port: pex890xx, bus: {bus}}}' for address, bus in bridges)
    held = ", ".join(f'"0000:{device}"' for device in devices.split())
    return f'{{id: "pci0000:{name}", devices: [{held}], bridges: [{listed}]}}'


SWITCH = (("50:01.0", 0x51), ("51:00.0", 0x52), ("52:00.0", 0x57))


@pytest.mark.parametrize(
    ("roots", "complaint"),
    [
        pytest.param(
            root("50", "", *SWITCH, ("50:02.0", 0x54)),
            "[0].bridges[3].bus: 0x54 is among the buses below 0000:51:00.0, 0x52 to 0x57, "
            "and the bridge is on none of them",
            id="a bridge's bus among another's",
        ),
        pytest.param(
            root("50", "54:00.0", *SWITCH),
            "[0].devices[0]: 0x54 is among the buses below 0000:51:00.0, 0x52 to 0x57, and no bridge leads to it",
            id="a gpu where nothing leads to",
        ),
        pytest.param(
            root("50", "", *SWITCH) + ", " + root("54"),
            "[1].id: 0x54 is among the buses below 0000:51:00.0, 0x52 to 0x57: it is no root's own",
            id="a root among a bridge's buses",
        ),
        pytest.param(
            root("50", "", *SWITCH) + ", " + root("60", "57:00.0"),
            '[1].devices[0]: "0000:57:00.0" is on a bus of pci0000:50, not of pci0000:60',
            id="below another root's bridge",
        ),
        pytest.param(
            root("50", "60:00.0") + ", " + root("60"),
            '[0].devices[0]: "0000:60:00.0" is on a bus of pci0000:60, not of pci0000:50',
            id="on another root's own bus",
        ),
        pytest.param(
            root("50", "53:00.0") + ", " + root("60", "53:01.0"),
            '[1].devices[0]: "0000:53:01.0" is on a bus of pci0000:50, not of pci0000:60',
            id="one bus in two roots",
        ),
        pytest.param(
            root("50", "51:00.0", *SWITCH), '[0].devices[0]: "0000:51:00.0" is a bridge', id="a bridge for a gpu"
        ),
        pytest.param(
            '{id: "pci0001:50", devices: ["0000:53:00.0"]}',
            '[0].devices[0]: "0000:53:00.0" is in another domain than pci0001:50',
            id="another domain",
        ),
    ],
)
def test_a_bus_in_two_places_is_refused(roots: str, complaint: str) -> None:
    assert faults(ROOTS % roots) == [f"p.yaml:4: pcie_topology.root_complexes{complaint}"]


def test_a_bridge_below_itself_is_refused_at_run_time_too() -> None:
    """Where an NVSwitch lies on that bus, whoever looks for the way up to it would never come to its end."""
    over = f"version: 1\nnode: {{pcie_topology: {{root_complexes: [{root('00', '', ('cf:01.0', 0xCF))}]}}}}"
    with pytest.raises(ProfileError) as caught:
        compile_state(load_board("h100"), Options(), {}, overrides=load_overrides(load(over.encode(), "o.yaml")))
    complaint = "must be a bus after the bridge's own, 0xcf, not 0xcf"
    assert [str(fault) for fault in caught.value.faults] == [
        f"o.yaml:2: pcie_topology.root_complexes[0].bridges[0].bus: {complaint}"
    ]


@pytest.mark.parametrize("gpus", [16, 64])
@pytest.mark.parametrize("name", BOARDS)
def test_gpus_that_are_made_up_leave_every_root_its_own_bus(name: str, gpus: int) -> None:
    """Else a root complex and all below it would lie below a bridge of another."""
    topology = board(name, gpus).node_shape.topology
    own = {root.id.removeprefix("pci") for root in topology.root_complexes}
    assert own.isdisjoint(f"{bridge.pci_bus_id[:4]}:{bridge.secondary:02x}" for bridge in topology.bridges)


@pytest.mark.parametrize(
    ("listed", "bridges"),
    [
        pytest.param("0000:53:01.0", "[]", id="on the root's own bus"),
        pytest.param("0000:57:01.0", '[{bdf: "0000:53:01.0", port: pex890xx, bus: 0x57}]', id="below a bridge"),
    ],
)
def test_a_gpu_that_no_root_lists_is_on_that_of_its_bus(listed: str, bridges: str) -> None:
    """NVML and sysfs agree on it, and on the one beside it that is listed."""
    other = listed.replace("01.0", "00.0")
    state = node(
        f"""
devices: [{{pci: {{bus_id: "{other}"}}}}, {{pci: {{bus_id: "{listed}"}}}}]
pcie_topology:
  root_complexes:
    - {{id: "pci0000:53", numa_node: 1, cpu_affinity: 8-15, devices: ["{listed}"], bridges: {bridges}}}
"""
    )
    made = tree(state)
    for gpu, place in zip(state.devices, places(state), strict=True):
        assert directory_of(made, gpu.pci_bus_id).startswith("sys/devices/pci0000:53/")
        assert read(made, gpu.pci_bus_id, "numa_node") == b"1\n"
        assert read(made, gpu.pci_bus_id, "local_cpulist") == b"8-15\n"
        assert (place.cpu_affinity[:2], place.memory_affinity[0]) == (b"\x00\xff", 2)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Root complexes, bridges, GPUs and switches on few buses, so that most of them contradict one another."""
    domains, buses = st.sampled_from(["0000", "0000", "ffff"]), st.integers(0, 7)
    addresses = st.builds("{}:{:02x}:{}".format, domains, buses, st.sampled_from(["00.0", "00.1", "1f.7"]))
    roots = []
    for _ in range(draw(st.integers(0, 3))):
        domain, own = draw(domains), draw(buses)
        bridges, bus = [], own
        for _ in range(draw(st.integers(0, 3))):
            at, bus = draw(st.sampled_from([own, bus])), draw(st.integers(bus, 8))
            place = f"{domain}:{at:02x}:{draw(st.integers(0, 31)):02x}.0"
            bridges.append({"bdf": place, "port": "pex890xx", "bus": bus})
        devices = draw(st.lists(addresses, max_size=2))
        numa = draw(st.integers(-1, 3))
        roots.append({"id": f"pci{domain}:{own:02x}", "numa_node": numa, "devices": devices, "bridges": bridges})
    gpus = [{"pci": {"bus_id": address}} if address else {} for address in draw(st.lists(st.just("") | addresses))]
    switches = [{"bdf": address, "device_id": 0x22A310DE} for address in draw(st.lists(addresses, max_size=2))]
    sections = {"pcie_topology": {"root_complexes": roots}, "devices": gpus[:4], "nvlink": {"switches": switches}}
    return "".join(f"{name}: {json.dumps(section)}\n" for name, section in sections.items())


@examples(60)
@given(documents(), st.sampled_from([1, 4, 64]))
def test_a_document_that_passes_is_one_tree_and_nvml_agrees(document: str, gpus: int) -> None:
    try:
        state = node(document, gpus)
    except ProfileError:
        return
    found = functions(state)
    assert len(found) == len(state.devices) + len(state.switches) + len(state.node_shape.topology.bridges)
    buses: dict[str, tuple[str, str]] = {}
    for address, function in found.items():
        place = function.place.root, function.place.above
        assert buses.setdefault(address[:7], place) == place
        assert path_of(function, found).startswith(f"devices/{function.place.root}/")
    for gpu, affinity in zip(state.devices, places(state), strict=True):
        numa = found[gpu.pci_bus_id].place.numa
        assert int.from_bytes(affinity.memory_affinity, "little") == (1 << numa if numa >= 0 else 0)
