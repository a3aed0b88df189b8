"""Overrides: base < all < device, key by key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.profile import Options, ProfileError, compile_state, load_overrides, load_text
from simnode.profile.document import Node, load, plain
from simnode.profile.overrides import Overrides, assignments, merge
from simnode.state import State
from tests.examples import examples
from tests.profile.documents import SMALL, h100, readings

KEYS = st.sampled_from("abcd")


def _node(value: object) -> Node:
    if isinstance(value, dict):
        return Node({key: _node(child) for key, child in value.items()}, "")
    if isinstance(value, list):
        return Node(tuple(map(_node, value)), "")
    assert value is None or isinstance(value, int)
    return Node(value, "")


SCALARS = st.none() | st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2)
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
MAPPINGS = st.dictionaries(KEYS, TREES, max_size=3)


@given(MAPPINGS)
@examples(40)
def test_an_empty_patch_changes_nothing(base: dict[str, object]) -> None:
    assert plain(merge(_node(base), _node({}))) == base


@given(MAPPINGS)
@examples(40)
def test_onto_nothing_a_patch_is_the_result(patch: dict[str, object]) -> None:
    assert plain(merge(_node({}), _node(patch))) == patch


@given(MAPPINGS, MAPPINGS)
@examples(40)
def test_a_patch_applied_twice_is_applied_once(base: dict[str, object], patch: dict[str, object]) -> None:
    once = merge(_node(base), _node(patch))
    assert plain(merge(once, _node(patch))) == plain(once)


@given(MAPPINGS, MAPPINGS)
@examples(40)
def test_every_leaf_of_the_patch_wins_and_every_other_leaf_of_the_base_stays(
    base: dict[str, object], patch: dict[str, object]
) -> None:
    def expected(old: object, new: object) -> object:
        if not isinstance(old, dict) or not isinstance(new, dict):
            return new
        return {
            key: expected(old[key], new[key]) if key in old and key in new else new.get(key, old.get(key))
            for key in old | new
        }

    before = _node(base)
    assert plain(merge(before, _node(patch))) == expected(base, patch)
    assert plain(before) == base


def _compiled(text: str, overrides: str = "", *assigned: str) -> State:
    over = load_overrides(load(overrides.encode(), "overrides.yaml")) if overrides else Overrides()
    return compile_state(load_text(text.encode(), "p.yaml"), Options(overrides=assigned), {}, overrides=over)


def test_the_nearer_layer_wins() -> None:
    text = SMALL.replace("architecture: ampere", "utilization: {gpu: 1, memory: 1}\n  architecture: ampere").replace(
        "- index: 1", "- index: 1\n    utilization: {gpu: 2}"
    )
    assert [readings(_compiled(text), at)["utilization.gpu"] for at in (0, 1)] == [1, 2]
    layered = _compiled(text, "all: {utilization: {gpu: 3}}\ndevices: {'1': {utilization: {gpu: 4}}}")
    assert [readings(layered, at)["utilization.gpu"] for at in (0, 1)] == [3, 4]
    assert [readings(layered, at)["utilization.memory"] for at in (0, 1)] == [1, 1]


def test_null_unsets_a_value_and_a_whole_block() -> None:
    state = h100("utilization.jpeg=null", "clocks=")
    keys = readings(state)
    assert "utilization.jpeg" not in keys
    assert "utilization.ofa" in keys
    assert not [key for key in keys if key.startswith("clocks.")]


def test_the_later_assignment_wins() -> None:
    assert readings(h100("utilization.gpu=1", "utilization.gpu=2"))["utilization.gpu"] == 2


def test_an_assignment_reaches_every_device() -> None:
    state = h100("thermal.temperature_gpu_c=91")
    assert {readings(state, at)["thermal.temperature_gpu_c"] for at in range(8)} == {91}


def test_a_value_is_yaml() -> None:
    patch = assignments(("processes=[{pid: 7, name: a=b}]", "pci.device_id=0x10"))
    assert plain(patch) == {"processes": [{"pid": 7, "name": "a=b"}], "pci": {"device_id": 16}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("al: {}", 'o.yaml:1: al: is no known key; did you mean "all"?'),
        ("all: {uuid: x}", "o.yaml:1: all.uuid: is no known key"),
        ("devices: {gpu0: {}}", "o.yaml:1: devices.gpu0: must be a device index from 0 to 63"),
        ("devices: {'0': {fan: {cuont: 1}}}", 'o.yaml:1: devices.0.fan.cuont: is no known key; did you mean "count"?'),
        ("devices: [1]", "o.yaml:1: devices: must be a mapping of device indices"),
        ("version: 2", "o.yaml:1: version: must be an integer from 1 to 1, not 2"),
    ],
)
def test_a_wrong_override_document_is_a_fault(text: str, expected: str) -> None:
    with pytest.raises(ProfileError) as raised:
        load_overrides(load(text.encode(), "o.yaml"))
    assert [str(fault) for fault in raised.value.faults] == [expected]
