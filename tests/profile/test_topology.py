"""The topology document: this node's cluster and clique, and what is wrong with one."""

from __future__ import annotations

import pytest

from simnode.profile import Compiler, Options, Overrides, ProfileError, load_overrides, load_text
from simnode.profile.document import load
from simnode.profile.topology import load_topology
from simnode.state import State
from tests.profile.documents import SMALL, readings

DOCUMENT = b"""\
version: 1
domains:
  - name: one
    uuid: 00000000-0000-0000-0000-00000000000A
    cliques:
      - {id: 0, nodes: [worker-a]}
      - {id: 5, nodes: [worker-b, worker-c]}
"""
FABRIC = "  fabric: {cluster_uuid: 00000000-0000-0000-0000-0000000000ff, clique_id: 9}\n"
WITH_FABRIC = SMALL.replace("devices:\n", FABRIC + "devices:\n")
HERE = "00000000-0000-0000-0000-00000000000a"


def placed(profile: str, node: str, overrides: str = "{}") -> State:
    environ = {"NODE_NAME": node} if node else {}
    compiler = Compiler(load_text(profile.encode(), "p.yaml"), Options(), environ, load_topology(DOCUMENT, "t.yaml"))
    return compiler.compile(load_overrides(load(overrides.encode(), "o.yaml")) if overrides != "{}" else Overrides())


def test_a_listed_node_has_its_cluster_and_clique() -> None:
    state = placed(WITH_FABRIC, "worker-c")
    assert (state.fabric.cluster_uuid, state.fabric.clique_id) == (HERE, 5)
    keys = readings(state)
    assert (keys["fabric.cluster_uuid"], keys["fabric.clique_id"], keys["fabric.state"]) == (HERE, 5, "completed")
    assert state.topology_raw == DOCUMENT


@pytest.mark.parametrize("node", ["", "worker-z"])
def test_any_other_node_keeps_the_profiles_own(node: str) -> None:
    state = placed(WITH_FABRIC, node)
    assert state.fabric.clique_id == 9
    assert readings(state)["fabric.clique_id"] == 9
    assert state.topology_raw == DOCUMENT


def test_a_board_without_a_fabric_gets_none() -> None:
    state = placed(SMALL, "worker-a")
    assert state.fabric.cluster_uuid == ""
    assert not [key for key in readings(state) if key.startswith("fabric.")]


def test_a_state_that_follows_the_manager_goes_on_following_it() -> None:
    state = placed(WITH_FABRIC.replace("clique_id: 9", "clique_id: 9, state: auto"), "worker-a")
    assert readings(state)["fabric.state"] == "auto"


def test_overrides_lie_on_top() -> None:
    assert readings(placed(WITH_FABRIC, "worker-a", "all: {fabric: {clique_id: 77}}"))["fabric.clique_id"] == 77


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("domains: []", "t.yaml:1: version: is missing"),
        ("version: 2", "t.yaml:1: version: must be an integer from 1 to 1, not 2"),
        ("version: 1\ndomains: [{name: x}]", "t.yaml:2: domains[0].uuid: is missing"),
        ("version: 1\ndomain: []", 't.yaml:2: domain: is no known key; did you mean "domains"?'),
        (
            DOCUMENT.decode().replace("worker-c", "worker-a"),
            't.yaml:7: domains[0].cliques[1].nodes[1]: "worker-a" has a clique already',
        ),
    ],
)
def test_a_wrong_topology_is_a_fault(text: str, said: str) -> None:
    with pytest.raises(ProfileError) as raised:
        load_topology(text.encode(), "t.yaml")
    assert [str(fault) for fault in raised.value.faults] == [said]


def test_an_empty_topology_places_nobody() -> None:
    assert load_topology(b"\n", "t.yaml").places == {}


def test_the_links_version_reaches_every_device() -> None:
    state = placed(SMALL + "nvlink: {version: 3, links_per_gpu: 2}\n", "")
    assert [readings(state, index)["nvlink.version"] for index in (0, 1)] == [3, 3]
