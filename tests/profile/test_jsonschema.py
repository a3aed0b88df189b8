"""The JSON Schema: every key of the schema is in it, with the form of its values."""

from __future__ import annotations

from typing import Any

from simnode.profile import boards, load_board
from simnode.profile.document import plain
from simnode.profile.jsonschema import profile_schema
from simnode.profile.schema import PROFILE
from simnode.profile.shapes import Items, Shape, Table

SCHEMA: dict[str, Any] = profile_schema()


def at(*path: str) -> dict[str, Any]:
    found = SCHEMA
    for name in path:
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


def test_every_key_is_there() -> None:
    def same(shape: Shape, schema: dict[str, Any]) -> None:
        if isinstance(shape, Table):
            assert list(schema["properties"]) == list(shape.keys)
            for name, child in shape.keys.items():
                same(child, schema["properties"][name])
        elif isinstance(shape, Items):
            same(shape.entry, schema["items"])

    same(PROFILE, SCHEMA)


def test_unknown_keys_are_refused_and_required_ones_asked_for() -> None:
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["required"] == ["version"]
    assert at("nvlink", "links", "[]")["required"] == ["link"]


def test_values_have_their_form() -> None:
    assert at("device_defaults", "thermal", "temperature_gpu_c")["anyOf"][0] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 250,
    }
    assert at("device_defaults", "load", "pattern")["enum"][:2] == ["idle", "steady"]
    assert at("device_defaults", "ecc", "mode_current")["enum"][-4:] == [True, False, None, "N/A"]
    assert at("devices", "[]", "uuid")["pattern"].startswith("^(GPU-")


def test_the_built_in_boards_use_only_keys_of_it() -> None:
    def known(value: object, schema: dict[str, Any]) -> None:
        if isinstance(value, dict) and "properties" in schema:
            for key, child in value.items():
                known(child, schema["properties"][key])
        elif isinstance(value, list) and "items" in schema:
            for child in value:
                known(child, schema["items"])

    for board in boards():
        known(plain(load_board(board).root), SCHEMA)
