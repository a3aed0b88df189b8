"""Runtime changes laid over a profile: base < all < device, key by key.

Mappings merge, scalars and lists replace whole, null unsets a value or a whole block (and `N/A` makes NVML refuse it).
The keys are those of `device_defaults`: what makes a device this one (uuid, bus id, minor) is no runtime value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simnode.nvml import layout
from simnode.profile.document import Document, Node, fields, parse
from simnode.profile.faults import Fault, ProfileError, in_order, quoted
from simnode.profile.schema import DEVICE_DEFAULTS
from simnode.profile.shapes import Scalar, Table, check

EMPTY = Node({}, "", override=True)
_SHAPE = Table({"version": Scalar("int", 1, 1), "all": DEVICE_DEFAULTS})


@dataclass(frozen=True)
class Overrides:
    """What is laid over every device (`all`) and over single ones (`devices`, by index)."""

    all: Node = EMPTY
    devices: Mapping[int, Node] = field(default_factory=dict)


def merge(base: Node, patch: Node) -> Node:
    """`base` with `patch` laid over it; neither is changed."""
    if not isinstance(base.value, dict) or not isinstance(patch.value, dict):
        return patch
    if not patch.value:
        return base
    merged = dict(base.value)
    for key, child in patch.value.items():
        merged[key] = merge(merged[key], child) if key in merged else child
    return base._replace(value=merged)


def assignments(texts: Iterable[str], option: str = "--set") -> Node:
    """The patch that `KEY=VALUE` texts make, the later one winning; a value is YAML 1.2. Raises ProfileError."""
    faults: list[Fault] = []
    patch = EMPTY._replace(file=option)
    for text in texts:
        key, equals, source = text.partition("=")
        if not equals or not all(key.split(".")):
            faults.append(Fault(option, "", None, f"{quoted(text)} must be KEY=VALUE, such as utilization.gpu=50"))
            continue
        node = _value(key, source, option, faults)
        if node is None:
            continue
        for part in reversed(key.split(".")):
            node = EMPTY._replace(file=option, value={part: node})
        found: list[Fault] = []
        check(node, DEVICE_DEFAULTS, "", found)
        faults.extend(found)
        patch = merge(patch, node)
    if faults:
        raise ProfileError(in_order(faults))
    return patch


def load_overrides(document: Document) -> Overrides:
    """The overrides of a document {version, all, devices: {"0": …}}. Raises ProfileError."""
    faults: list[Fault] = []
    root = document.root
    if root.value is None:
        return Overrides()
    entries = dict(fields(root))
    devices = entries.pop("devices", None)
    check(root._replace(value=entries) if isinstance(root.value, dict) else root, _SHAPE, "", faults)
    known = {str(index): index for index in range(layout.MAX_DEVICES)}
    by_index: dict[int, Node] = {}
    for name, node in fields(devices).items():
        if name in known:
            check(node, DEVICE_DEFAULTS, f"devices.{name}", faults)
            by_index[known[name]] = marked(node)
        else:
            message = f"must be a device index from 0 to {layout.MAX_DEVICES - 1}"
            faults.append(Fault(node.file, f"devices.{name}", node.line, message))
    if devices is not None and devices.value is not None and not isinstance(devices.value, dict):
        faults.append(Fault(devices.file, "devices", devices.line, "must be a mapping of device indices"))
    if faults:
        raise ProfileError(in_order(faults))
    return Overrides(marked(entries.get("all", EMPTY)), by_index)


def marked(node: Node) -> Node:
    """`node` as an override all the way down: what it sets holds against any load curve."""
    value = node.value
    if isinstance(value, dict):
        value = {key: marked(child) for key, child in value.items()}
    elif isinstance(value, tuple):
        value = tuple(map(marked, value))
    return node._replace(value=value, override=True)


def _value(key: str, source: str, option: str, faults: list[Fault]) -> Node | None:
    if not source.strip():
        return Node(None, option, override=True)
    found: list[Fault] = []
    node = parse(source.encode("utf-8", "surrogateescape"), option, found)
    faults.extend(Fault(option, key, None, fault.message) for fault in found)
    return None if node is None or found else unplaced(marked(node))


def unplaced(node: Node) -> Node:
    """`node` without lines: an option has none."""
    value = node.value
    if isinstance(value, dict):
        value = {key: unplaced(child) for key, child in value.items()}
    elif isinstance(value, tuple):
        value = tuple(map(unplaced, value))
    return node._replace(value=value, line=None)
