"""The schema of a profile as JSON Schema (draft 2020-12), for editors that complete and check while one writes.

It says what single values may be. What it cannot say (what must hold between values, words in any case and spelling) is
said by loading the document: whatever loads is valid here, but for a word written another way than the schema's.
"""

from __future__ import annotations

from simnode.profile.schema import PROFILE
from simnode.profile.shapes import NOT_AVAILABLE, Either, Items, Scalar, Shape, Table

_Schema = dict[str, object]

_JSON_TYPES = {"int": "integer", "float": "number"}


def profile_schema() -> _Schema:
    """The schema of a whole document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "simnode profile",
        **_table(PROFILE, nullable=False),
    }


def _schema(shape: Shape) -> _Schema:
    if isinstance(shape, Scalar):
        return _scalar(shape)
    if isinstance(shape, Table):
        return _table(shape, nullable=not shape.required)
    if isinstance(shape, Either):
        return {"anyOf": [_items(shape.sequence), _table(shape.mapping, nullable=True)]}
    return _items(shape)


def _table(shape: Table, *, nullable: bool) -> _Schema:
    schema: _Schema = {
        "type": ["object", "null"] if nullable else "object",
        "properties": {name: _schema(child) for name, child in shape.keys.items()},
        "additionalProperties": False,
    }
    if shape.required:
        schema["required"] = list(shape.required)
    return schema


def _items(shape: Items) -> _Schema:
    return {"type": ["array", "null"], "items": _schema(shape.entry), "maxItems": shape.most}


def _scalar(shape: Scalar) -> _Schema:
    """Every value may be null or N/A as well; text may be written as a number."""
    if shape.kind == "flag":
        return {"enum": [True, False, 0, 1, None, NOT_AVAILABLE]}
    if shape.kind == "word":
        switch = [True, False] if "enabled" in shape.choices else []
        return {"enum": [*shape.choices, *switch, None, NOT_AVAILABLE]}
    if shape.kind == "text":
        text: _Schema = {"type": ["string", "number", "null"]}
        if shape.pattern is not None:
            text["pattern"] = f"^({shape.pattern.pattern}|{NOT_AVAILABLE}|)$"
        if shape.length:
            text["maxLength"] = shape.length
        if shape.expect:
            text["description"] = shape.expect
        return text
    number: _Schema = {"type": _JSON_TYPES[shape.kind]}
    if shape.minimum is not None:
        number["minimum"] = shape.minimum
    if shape.maximum is not None:
        number["maximum"] = shape.maximum
    spelled: list[_Schema] = [{"type": "string", "pattern": "^[0-9]+$"}] if shape.spelled else []
    return {"anyOf": [number, {"enum": [None, NOT_AVAILABLE]}, *spelled]}
