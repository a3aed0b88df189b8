"""What a runtime change makes of the overrides: pure, from one value to the next.

A target is the node's own sections ("node"), every device ("all") or one device, by index. A fault is the whole
`failure` block: what a profile says about when it trips is switched off with it, and its number makes it another fault
than an equal one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from simnode.profile.document import Content, Node, fields, find
from simnode.profile.overrides import EMPTY, Overrides, merge

Target = int | Literal["all", "node"]

FAILURE = "failure"
LOADED = "system.loaded_version"
NOTHING = EMPTY._replace(value=None)


def bucket(overrides: Overrides, target: Target) -> Node:
    """What is laid over the target itself."""
    if target == "node":
        return overrides.node
    return overrides.all if target == "all" else overrides.devices.get(target, EMPTY)


def assign(overrides: Overrides, target: Target, patch: Node) -> Overrides:
    """Lay `patch` over the target, on top of what is there."""
    return _with_bucket(overrides, target, merge(bucket(overrides, target), patch))


def reset(overrides: Overrides, target: Target | None, keys: Iterable[str]) -> Overrides:
    """Forget the dotted `keys` of the target, or all of it without any; "all" means every device, None everything."""
    if target is None:
        targets: tuple[Target, ...] = ("node", "all", *overrides.devices)
    else:
        targets = ("all", *overrides.devices) if target == "all" else (target,)
    chosen = tuple(keys)
    for one in targets:
        kept = bucket(overrides, one) if chosen else EMPTY
        for key in chosen:
            kept = _without(kept, key.split("."))
        overrides = _with_bucket(overrides, one, kept)
    return overrides


def laid(overrides: Overrides, key: str) -> bool:
    """True if something is laid over the dotted key, null and unknown keys included."""
    *above, last = key.split(".")
    contents = (overrides.node, overrides.all, *overrides.devices.values())
    return any(last in fields(find(content, ".".join(above)) if above else content) for content in contents)


def inject(overrides: Overrides, target: Target, mode: str | None, xid: int | None, number: int) -> Overrides:
    """Make the target fail from now on; for "all", whatever single devices were told before."""
    if target == "all":
        overrides = reset(overrides, "all", (FAILURE,))
    block = _mapping(
        {
            "mode": _scalar(mode),
            "xid": NOTHING if xid is None else _mapping({"code": _scalar(xid)}),
            "after_calls": NOTHING,
            "probability": NOTHING,
            "injection": _scalar(number),
        }
    )
    overrides = reset(overrides, target, (FAILURE,)) if isinstance(target, int) else overrides
    return assign(overrides, target, _mapping({FAILURE: block}))


def unskewed(overrides: Overrides, *, below: bool) -> Overrides:
    """The kernel modules are the driver's own; `below`: the profile says otherwise, so that must be cancelled."""
    overrides = reset(overrides, "node", (LOADED,))
    section, _, key = LOADED.partition(".")
    return assign(overrides, "node", _mapping({section: _mapping({key: NOTHING})})) if below else overrides


def clear(overrides: Overrides, target: Target, *, below: bool) -> Overrides:
    """End the target's fault; `below`: another layer than the target's makes it fail too, so that must be cancelled."""
    overrides = reset(overrides, target, (FAILURE,))
    cancelled = below or (isinstance(target, int) and find(overrides.all, FAILURE) is not None)
    return assign(overrides, target, _mapping({FAILURE: NOTHING})) if cancelled else overrides


def _with_bucket(overrides: Overrides, target: Target, content: Node) -> Overrides:
    if target == "node":
        return replace(overrides, node=content)
    if target == "all":
        return replace(overrides, all=content)
    devices = {**overrides.devices, target: content}
    return replace(overrides, devices={index: node for index, node in sorted(devices.items()) if node.value})


def _without(node: Node, parts: list[str]) -> Node:
    """`node` less what is at the key, and less the mappings that are empty then."""
    if not isinstance(node.value, dict) or parts[0] not in node.value:
        return node
    entries = dict(node.value)
    rest = _without(entries[parts[0]], parts[1:]) if len(parts) > 1 else EMPTY
    if rest.value == {}:
        del entries[parts[0]]
    else:
        entries[parts[0]] = rest
    return node._replace(value=entries)


def _mapping(entries: dict[str, Node]) -> Node:
    return EMPTY._replace(value=entries)


def _scalar(value: Content) -> Node:
    return EMPTY._replace(value=value, text="" if value is None else str(value))
