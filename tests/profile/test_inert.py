"""Keys without effect: the list is true of what a node is compiled to, in both directions, and the docs have it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from simnode.nvml.encode import Records, encode
from simnode.profile import Compiler, Options, ProfileError, load_board, load_text
from simnode.profile.document import load
from simnode.profile.inert import DEVICE_KEYS, NODE_KEYS, PROFILE_KEYS, inert, note, without_effect
from simnode.profile.keys import dotted
from simnode.profile.schema import DEVICE_DEFAULTS, NODE_SECTIONS, PROFILE
from simnode.profile.shapes import Items, Scalar, Shape, Table
from simnode.state import State
from tests.profile.documents import SMALL

PROFILE_PAGE = Path(__file__).parents[2] / "docs/profile.md"
TEXTS = ("7", "a0", "0000:0b:00.0", "12345678-1234-1234-1234-123456789012")
TELLING = {  # a value of a key that the samples below do not hit, and what it needs beside it
    "processes": ("[{pid: 7}]",),
    "power.enforced_limit_mw": ("300000",),
    "power.requested_limit_mw": ("300000",),
    "power.default_limit_mw": ("300000",),
    "fan.speed_percent": ("33", "fan.count=1"),
    "failure.xid.code": ("31",),
    "failure.injection": ("3", "failure.xid.code=31"),
    "dynamic_metrics.seed": ("3", "dynamic_metrics.utilization.pattern=steady"),
    "dynamic_metrics.temperature.variance_c": ("9", "dynamic_metrics.temperature.base_c=50"),
    "dynamic_metrics.temperature.ramp_c": ("9", "dynamic_metrics.temperature.base_c=50"),
    "dynamic_metrics.temperature.ramp_period_sec": (
        "9",
        "dynamic_metrics.temperature.base_c=50",
        "dynamic_metrics.temperature.ramp_c=9",
    ),
    "dynamic_metrics.power.variance_mw": ("9", "dynamic_metrics.power.base_mw=300000"),
}


def samples(shape: Shape) -> tuple[object, ...]:
    if not isinstance(shape, Scalar):
        return ([],)
    if shape.kind == "word":
        return shape.choices
    if shape.kind == "flag":
        return (True, False)
    return TEXTS if shape.kind == "text" else (1, 2, 30, 60, shape.minimum or 0, shape.maximum or 0)


board_of = cache(load_board)


def compiled(board: str, *assignments: str) -> State:
    return Compiler(board_of(board), Options(gpus=1, overrides=assignments), {}).compile()


@cache
def base_of(board: str, *assignments: str) -> tuple[State, Records]:
    """A node to compare with, and its image."""
    state = compiled(board, *assignments)
    return state, encode(state)


def tells(board: str, key: str, shape: Shape) -> bool:
    """Whether some value of the key makes a GPU of the board another one, or lets it read something else."""
    value, *beside = TELLING.get(key, ("",))
    base, image = base_of(board, *beside)
    for text in (value,) if value else map(json.dumps, samples(shape)):
        try:
            state = compiled(board, *beside, f"{key}={text}")
        except ProfileError:
            continue  # it contradicts another value of the board
        if (state.devices, state.runtime) != (base.devices, base.runtime) or encode(state) != image:
            return True
    return False


@pytest.mark.parametrize("group", sorted(DEVICE_DEFAULTS.keys))
def test_a_gpus_key_is_listed_exactly_if_it_has_no_effect(group: str) -> None:
    for key, shape in dotted(Table({group: DEVICE_DEFAULTS.keys[group]})):
        assert any(tells(board, key, shape) for board in ("h100", "t4")) != inert(key, DEVICE_KEYS), key


def test_every_listed_key_is_one() -> None:
    def known(shape: Shape, parts: list[str]) -> bool:
        if not parts:
            return True
        name = parts[0].removesuffix("[]")
        below = shape.keys.get(name) if isinstance(shape, Table) else None
        if parts[0].endswith("[]"):
            below = below.entry if isinstance(below, Items) else None
        return below is not None and known(below, parts[1:])

    keys = [key for key in PROFILE_KEYS if key != "device_defaults.grace_cpu_pair"]
    assert [key for key in keys if not known(PROFILE, key.split("."))] == []
    assert [key for key in NODE_KEYS if not known(NODE_SECTIONS, key.split("."))] == []


def test_the_docs_have_the_list() -> None:
    table = PROFILE_PAGE.read_text().partition("\n## Keys without effect\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([^`]+)`", "".join(line.split("|")[2] for line in table.splitlines() if line[:1] == "|"))
    assert sorted(named) == sorted([*DEVICE_KEYS, *NODE_KEYS, "dynamic_metrics_defaults"])


def test_what_a_document_says_without_effect_is_one_line() -> None:
    text = SMALL.replace(
        "  architecture: ampere",
        "  architecture: ampere\n  features: {fp8_support: true}\n  driver_model: {current: a, pending: b}",
    )
    text += "    grace_cpu_pair: 1\ninfiniband: {enabled: false}\n"
    document = load_text(text.encode(), "p.yaml")
    assert note(without_effect(document.root, PROFILE_KEYS)) == (
        "no effect yet: device_defaults.features.fp8_support (line 6), device_defaults.driver_model (line 7), "
        "devices[].grace_cpu_pair (line 17), infiniband.enabled (line 18)"
    )


def test_what_has_an_effect_and_what_is_unset_is_not_noted() -> None:
    tree = load(b"features:\nutilization: {gpu: 5}\n", "p").root
    assert note(without_effect(tree, DEVICE_KEYS)) == ""
