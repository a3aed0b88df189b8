"""Runtime changes laid over a profile: base < all < device, key by key, and the node's own sections beside them.

Mappings merge, scalars and lists replace whole, null unsets a value or a whole block (and `N/A` makes NVML refuse it).
The keys are those of `device_defaults`: what makes a device this one (uuid, bus id, minor) is no runtime value. `node`
has the profile's sections that are no device's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from simnode.nvml import layout
from simnode.profile.document import Document, Node, fields, find, parse
from simnode.profile.faults import Fault, ProfileError, UnknownKey, in_order, quoted, without_unknown
from simnode.profile.keys import group, wrong_key
from simnode.profile.schema import DEVICE, DEVICE_DEFAULTS, FAILURE, NODE_SECTIONS
from simnode.profile.shapes import MOST_ADVISED, Scalar, Table, check

EMPTY = Node({}, "", override=True)
_OWN = "is what makes a GPU this one, and no runtime value: write it into `devices` of a profile"
_SHAPE = Table({"version": Scalar("int", 1, 1), "node": NODE_SECTIONS, "all": DEVICE_DEFAULTS})


class Overrides(Struct, frozen=True):
    """What is laid over every device (`all`), over single ones (`devices`, by index) and over the rest (`node`)."""

    all: Node = EMPTY
    devices: Mapping[int, Node] = field(default_factory=dict)
    node: Node = EMPTY

    def __bool__(self) -> bool:
        return bool(self.all.value or self.devices or self.node.value)


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


def assignments(texts: Iterable[str], option: str = "--set", shape: Table = DEVICE_DEFAULTS) -> Node:
    """The patch that `KEY=VALUE` texts make, the later one winning; a value is YAML 1.2. Raises ProfileError.

    A mode of failure replaces whatever fails: what the texts do not say of it is unset.
    """
    faults: list[Fault] = []
    patch = EMPTY._replace(file=option)
    for text in texts:
        key, equals, source = text.partition("=")
        if not equals or not all(key.split(".")):
            faults.append(Fault(option, "", None, f"{quoted(text)} must be KEY=VALUE, such as utilization.gpu=50"))
            continue
        node = _value(key, source, option, faults)
        if node is not None:
            patch = merge(patch, _at(key, node, shape, faults))
    if faults:
        raise ProfileError(in_order(faults))
    return merge(patch, _replaced_failure(patch))


def load_overrides(document: Document, unknown: list[Fault] | None = None) -> Overrides:
    """The overrides of a document {version, all, devices: {"0": …}, node}. Raises ProfileError.

    Unknown keys are faults too, unless `unknown` is there to take them.
    """
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
            if node.value is not None:
                by_index[known[name]] = marked(node)
        else:
            message = f"must be a device index from 0 to {layout.MAX_DEVICES - 1}"
            faults.append(Fault(node.file, f"devices.{name}", node.line, message))
    if devices is not None and devices.value is not None and not isinstance(devices.value, dict):
        faults.append(Fault(devices.file, "devices", devices.line, "must be a mapping of device indices"))
    faults = without_unknown(faults, unknown)
    if faults:
        raise ProfileError(in_order(faults))
    return Overrides(marked(_section(entries, "all")), by_index, marked(_section(entries, "node")))


def _section(entries: dict[str, Node], name: str) -> Node:
    section = entries.get(name, EMPTY)
    return EMPTY if section.value is None else section


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


def _at(key: str, node: Node, shape: Table, faults: list[Fault]) -> Node:
    """The patch that gives `key` the value; what is wrong with it is appended to `faults`."""
    single = node.value is not None and not isinstance(node.value, dict)
    inside = group(key, shape) if single else ()
    patch = node
    for part in reversed(key.split(".")):
        patch = EMPTY._replace(file=node.file, value={part: patch})
    if inside:
        faults.append(Fault(node.file, key, None, f"is no value but a group of them: set one, such as {inside[0]}"))
        return patch
    before = len(faults)
    check(patch, shape, "", faults)
    for at, fault in enumerate(faults[before:], before):
        if isinstance(fault, UnknownKey) and "[" not in fault.key:
            if shape is DEVICE_DEFAULTS and not wrong_key(fault.key, DEVICE, advise=False):
                faults[at] = Fault(fault.file, fault.key, fault.line, _OWN)
            else:
                faults[at] = replace(fault, message=wrong_key(fault.key, shape, advise=at < MOST_ADVISED))
    return patch


def _replaced_failure(patch: Node) -> Node:
    """What unsets, below the failure of `patch`, all that it does not say; nothing if it has no mode."""
    failure = find(patch, "failure")
    if find(failure, "mode") is None:
        return EMPTY
    unsaid = {key: EMPTY._replace(value=None) for key in FAILURE.keys if key not in fields(failure)}
    return EMPTY._replace(value={"failure": EMPTY._replace(value=unsaid)})


def unplaced(node: Node) -> Node:
    """`node` without lines: an option has none."""
    value = node.value
    if isinstance(value, dict):
        value = {key: unplaced(child) for key, child in value.items()}
    elif isinstance(value, tuple):
        value = tuple(map(unplaced, value))
    return node._replace(value=value, line=None)
