"""The keys that there are, dotted as people write them: a list to look into, and what may be meant by one there is not.

It knows the schema only. Whether a key has an effect is another question (inert.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from simnode.nvml.cells import BY_KEY
from simnode.profile.faults import Fault, UnknownKey
from simnode.profile.schema import DEVICE
from simnode.profile.shapes import MOST_ADVISED, Either, Items, Scalar, Shape, Table, form, meant, near

_LIKENESS_AFAR = 0.8  # of a key elsewhere: there are many of them


def dotted(shape: Table, above: str = "") -> Iterator[tuple[str, Shape]]:
    """Every key of `shape` that holds a value or a list, with what that may be; in the schema's order."""
    for name, child in shape.keys.items():
        key = f"{above}.{name}" if above else name
        if isinstance(child, Table) and not child.required:
            yield from dotted(child, key)
        else:
            yield key, child


def described(key: str, shape: Shape) -> str:
    """What the value of a key may be, in words."""
    if isinstance(shape, Scalar):
        cell = BY_KEY.get(key)
        unit = f" ({cell.unit})" if cell is not None and cell.unit else ""
        return f"{form(shape)}{unit}"
    if isinstance(shape, Items):
        entry = shape.entry
        return f"a list of mappings: {', '.join(entry.keys)}" if isinstance(entry, Table) else "a list"
    return "a list or a mapping" if isinstance(shape, Either) else "a mapping"


def group(key: str, shape: Table) -> tuple[str, ...]:
    """The keys below a dotted key that stands for several; none if it stands for a value or is unknown."""
    found: Shape | None = shape
    for name in key.split("."):
        found = found.keys.get(name) if isinstance(found, Table) else None
    return tuple(known for known, _ in dotted(found, key)) if isinstance(found, Table) and not found.required else ()


def wrong_key(key: str, shape: Table, *, advise: bool = True) -> str:
    """What is wrong with a dotted key that should be one of `shape`; "" if nothing is.

    `advise`: say which may be meant, too. Where no key beside it is near, one of its name elsewhere is:
    `temperature_gpu_c` for that of `thermal`.
    """
    place: Shape = shape
    for name in key.split("."):
        place = place.mapping if isinstance(place, Either) else place
        if not isinstance(place, Table):
            return "is no known key: there is nothing below a value"
        if name not in place.keys:
            return f"is no known key{meant(near(name, place.keys) or _elsewhere(key, shape)) if advise else ''}"
        place = place.keys[name]
    return ""


def placed(faults: list[Fault], shape: Table) -> list[Fault]:
    """The faults of a document, the first unknown keys with the place that may be meant; any other fault as it is."""
    unknown = [at for at, fault in enumerate(faults) if isinstance(fault, UnknownKey)][:MOST_ADVISED]
    advised = {at: _placed(faults[at], shape) for at in unknown}
    return [advised.get(at, fault) for at, fault in enumerate(faults)]


def _placed(fault: Fault, shape: Table) -> Fault:
    """An unknown key with the place that may be meant.

    That is the only place of that very name, else what is near beside it, else what is near elsewhere. An entry of
    `devices` is looked through first: what is misplaced in it most likely belongs to it.
    """
    entry = re.match(r"devices\[[0-9]+\]\.", fault.key)
    tables = ((entry[0], DEVICE), ("", shape)) if entry else (("", shape),)
    for above, table in tables:
        named = [place for place in _places(table, above) if place.rpartition(".")[2] == fault.key.rpartition(".")[2]]
        if len(named) == 1:
            return replace(fault, message=f"is no known key{meant(named)}")
    if fault.message.endswith("?"):
        return fault
    for above, table in tables:
        found = [f"{above}{place}" for place in _elsewhere(fault.key, table)]
        if found:
            return replace(fault, message=f"{fault.message}{meant(found)}")
    return fault


def _elsewhere(key: str, shape: Table) -> tuple[str, ...]:
    places: dict[str, str] = {}
    for known, _ in dotted(shape):
        places.setdefault(known.rpartition(".")[2], known)
    return tuple(places[name] for name in near(key.rpartition(".")[2], places, _LIKENESS_AFAR))


def _places(shape: Table, above: str = "") -> Iterator[str]:
    """Every dotted key of `shape`, also those that stand for several."""
    for name, child in shape.keys.items():
        yield f"{above}{name}"
        if isinstance(child, Table):
            yield from _places(child, f"{above}{name}.")
