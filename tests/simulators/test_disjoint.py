"""Trees of different simulators are disjoint for every State: whatever is compiled, nobody wants another's path."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from simnode.agent import Reports
from simnode.host import Host, Tree
from simnode.profile import Options, boards, compile_state, load_board
from simnode.simulators import TreeSimulator
from simnode.simulators.cri import CRI, Runtimes
from simnode.simulators.fabricmanager import FabricManager
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.simulators.gpudriver.kernellog import NO_KERNEL
from simnode.simulators.imex import IMEX, Software
from simnode.simulators.migcaps import MIGCaps
from simnode.simulators.nvlink import NVLink
from simnode.simulators.pcibus import PCIBus
from simnode.state import Facts, State
from tests.examples import examples
from tests.mig.documents import document

PARTITIONED = document(
    "h100", "{gpus: [{index: 0, gpu_instances: [{profile: 3g.40gb}]}, {index: 3, gpu_instances: [{profile: 1g.10gb}]}]}"
)
DOCUMENTS = {"partitioned": PARTITIONED} | {name: load_board(name) for name in boards()}
NAMES = st.sampled_from(["driver", "topology", "fabric-state", "run", "config", "x"])


def simulators() -> Iterable[TreeSimulator]:
    host = Host("/nonexistent", boot_id="boot")
    yield CRI(host, Runtimes(host, ("run/cdi",), "/var/lib/simnode"), b"hook", lambda *_: Tree.empty)
    yield GPUDriver(host, DriverFiles(b"library", b"nvidia-smi", b"cuda"), "stand-in")
    yield FabricManager(host, Reports().report, logging.getLogger())
    yield IMEX(host, "stand-in", NO_KERNEL.procfs, Software(host.root, Reports().report, logging.getLogger()))
    yield MIGCaps(host, "stand-in", lambda _: "")
    yield NVLink(host)
    yield PCIBus(host)


@st.composite
def states(draw: st.DrawFn) -> State:
    """What compiles from a built-in board, options and an environment, with or without the other documents."""
    directory = draw(st.lists(NAMES, max_size=3).map(lambda names: "".join(f"/{name}" for name in names)))
    options = Options(
        gpus=draw(st.none() | st.integers(0, 64)),
        driver_version=draw(st.sampled_from([None, "535.129.03", "580.65.06"])),
    )
    environ = {"SIMNODE_FABRICMANAGER_STATE_DIR": directory, "SIMNODE_IMEX": draw(st.sampled_from(["true", "false"]))}
    state = compile_state(DOCUMENTS[draw(st.sampled_from(sorted(DOCUMENTS)))], options, environ)
    raw = st.sampled_from([b"", b"x"])
    return msgspec.structs.replace(state, topology_raw=draw(raw), mig_profiles_raw=draw(raw))


@examples(60)
@given(states(), st.booleans())
def test_no_path_is_in_two_trees_nor_below_anothers_file(state: State, ready: bool) -> None:
    trees = [simulator.tree(state, Facts.of(fabric_ready=ready)) for simulator in simulators()]
    assert Tree.disjoint(*trees)


def test_every_simulator_of_a_local_node_is_among_them() -> None:
    """The test above says nothing of a simulator that it does not know."""
    source = Path(__file__).parents[2] / "src/simnode/simulators"
    modules = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {simulator.name for simulator in simulators()} == modules - {"__init__"}


def test_with_everything_on_every_simulator_wants_something() -> None:
    environ = {"SIMNODE_FABRICMANAGER_STATE_DIR": "/x", "SIMNODE_IMEX": "true"}
    compiled = compile_state(PARTITIONED, Options(), environ)
    state = msgspec.structs.replace(compiled, topology_raw=b"x")
    assert all(len(simulator.tree(state, Facts())) for simulator in simulators())
