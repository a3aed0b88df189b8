"""The schema: existing profiles load whole, and whatever it lets through the image can hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simnode.nvml.cells import BY_KEY
from simnode.nvml.encode import encode
from simnode.profile import Options, ProfileError, compile_state, load_text
from simnode.profile.document import load, plain
from simnode.profile.schema import DERIVED, DEVICE_DEFAULTS, PROFILE
from simnode.profile.shapes import Either, Items, Scalar, Shape, Table
from simnode.state import State
from tests.examples import examples
from tests.profile.documents import SMALL

KNOWN = [
    line.split("\t")
    for line in (Path(__file__).parent / "known_keys.tsv").read_text().splitlines()
    if not line.startswith("#")
]


def _put(tree: Any, path: list[str], value: object) -> None:
    name, rest = path[0].removesuffix("[]"), path[1:]
    if path[0].endswith("[]"):
        entries = tree.setdefault(name, [{}] if rest else [])
        if rest:
            _put(entries[0], rest, value)
        elif value != []:
            entries.append(value)
    elif rest:
        _put(tree.setdefault(name, {}), rest, value)
    else:
        tree[name] = value


def _known_document() -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in KNOWN:
        _put(tree, key.split("."), plain(load(value.encode(), "known").root))
    return tree


def _compiled(tree: object) -> State:
    return compile_state(load_text(json.dumps(tree).encode(), "p.yaml"), Options(), {})


def test_a_profile_with_every_known_key_loads_and_compiles() -> None:
    state = _compiled(_known_document())
    assert len(KNOWN) == 205
    assert len(state.devices) == 1
    assert encode(state)


def test_a_single_device_may_have_every_key_of_the_defaults() -> None:
    tree = _known_document()
    (device,) = tree["devices"]
    defaults = tree.pop("device_defaults")
    for block in ("pci", "platform"):
        defaults[block].update(device[block])
    device.update({key: value for key, value in defaults.items() if key not in device or key in ("pci", "platform")})
    assert _compiled(tree).runtime == _compiled(_known_document()).runtime


def test_every_cell_but_the_derived_is_a_key() -> None:
    for key in BY_KEY:
        shape: Shape | None = DEVICE_DEFAULTS
        for part in key.split("."):
            shape = shape.keys.get(part) if isinstance(shape, Table) else None
        assert (shape is None) == (key in DERIVED), key


def test_a_scalar_written_as_a_number_may_be_a_text() -> None:
    state = compile_state(
        load_text(
            SMALL.replace(
                "- index: 0", "- index: 0\n    serial: 0123456789012\n    inforom: {oem_object: 2.10}"
            ).encode(),
            "p",
        ),
        Options(),
        {},
    )
    assert state.devices[0].serial == "0123456789012"
    assert dict(state.runtime.devices[0].values)["inforom.oem_object"] == "2.10"


def _values(shape: Shape) -> st.SearchStrategy[Any]:
    """Values that the schema accepts."""
    if isinstance(shape, Either):
        return _values(shape.sequence)
    if isinstance(shape, Table):
        required = {
            key: _values(shape.keys[key]).filter(lambda value: value not in (None, "", "N/A")) for key in shape.required
        }
        optional = {key: _values(child) for key, child in shape.keys.items() if key not in required}
        return st.fixed_dictionaries(required, optional=optional)
    if isinstance(shape, Items):
        entries = _values(shape.entry).filter(lambda value: value not in (None, "", "N/A"))
        return st.lists(entries, max_size=min(shape.most, 3))
    return (
        st.none() | st.just("N/A") | _scalars(shape)
        if not shape.pattern
        else st.from_regex(shape.pattern, fullmatch=True)
    )


def _scalars(shape: Scalar) -> st.SearchStrategy[Any]:
    low, high = shape.minimum, shape.maximum
    if shape.kind == "word":
        return st.sampled_from(shape.choices)
    if shape.kind == "flag":
        return st.booleans()
    if shape.kind == "text":
        return st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=min(shape.length or 8, 8))
    if shape.kind == "float":
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    return st.integers(None if low is None else int(low), None if high is None else int(high))


def _leaves(shape: Shape, path: str = "") -> dict[str, Shape]:
    if isinstance(shape, Table) and not shape.required:
        return {
            leaf: child
            for key, entry in shape.keys.items()
            for leaf, child in _leaves(entry, f"{path}.{key}" if path else key).items()
        }
    return {path: shape}


LEAVES = _leaves(DEVICE_DEFAULTS)


@given(st.data(), st.sampled_from(["turing", "ampere", "hopper", "kepler"]))
@examples(60)
def test_whatever_the_schema_accepts_the_image_holds(data: st.DataObject, architecture: str) -> None:
    chosen = data.draw(st.lists(st.sampled_from(sorted(LEAVES)), max_size=12, unique=True))
    tree: Any = plain(load(SMALL.encode(), "small").root)
    for key in chosen:
        _put(tree["device_defaults"], key.split("."), data.draw(_values(LEAVES[key]), key))
    tree["device_defaults"].update(name="X", architecture=architecture)
    try:
        state = compile_state(load_text(json.dumps(tree).encode(), "p.yaml"), Options(), {})
    except ProfileError:
        return  # values that contradict one another
    assert encode(state)
    assert all(key in BY_KEY for device in state.runtime.devices for key, _ in device.values)


BLOCKS = ("nvlink", "pcie_topology", "infiniband", "fabricmanager", "imex", "mig", "dynamic_metrics_defaults")


@given(st.data(), st.sets(st.sampled_from(BLOCKS)), st.integers(0, 4))
@examples(25)
def test_whatever_a_node_declares_the_image_holds(data: st.DataObject, blocks: set[str], gpus: int) -> None:
    tree: Any = plain(load(SMALL.encode(), "small").root)
    for block in sorted(blocks):
        tree[block] = data.draw(_values(PROFILE.keys[block]), block)
    try:
        state = compile_state(load_text(json.dumps(tree).encode(), "p.yaml"), Options(gpus=gpus), {})
    except ProfileError:
        return  # blocks that contradict one another
    assert encode(state)


def test_values_are_sorted_by_key() -> None:
    for device in _compiled(_known_document()).runtime.devices:
        keys = [key for key, _ in device.values]
        assert keys == sorted(set(keys))


def test_patterns_match_ascii_only() -> None:
    def patterns(shape: Shape) -> list[re.Pattern[str]]:
        if isinstance(shape, Scalar):
            return [shape.pattern] if shape.pattern else []
        children = shape.keys.values() if isinstance(shape, Table) else ()
        return [found for child in children for found in patterns(child)]

    assert all("\\d" not in pattern.pattern and "\\w" not in pattern.pattern for pattern in patterns(DEVICE_DEFAULTS))
