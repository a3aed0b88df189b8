"""The devices of a profile with every layer merged, and whether the values of each agree.

What one key says may contradict another only in the merged device: memory that does not add up, limits in the wrong
order. A document is checked for it when it is loaded, and again with the overrides when it is compiled.
"""

from __future__ import annotations

from simnode.nvml import layout
from simnode.profile.document import Node, fields, find, items
from simnode.profile.faults import Fault
from simnode.profile.identity import entries
from simnode.profile.overrides import merge
from simnode.profile.shapes import NOT_AVAILABLE, decimal, number, text

NO_KEYS = Node({}, "")
_REQUIRED = ("name", "architecture", "memory.total_bytes", "pci.device_id")


def base_devices(root: Node, count: int) -> tuple[Node, ...]:
    """The keys of each of `count` devices as the document has them; equal entries give one node."""
    defaults = find(root, "device_defaults") or NO_KEYS
    listed = entries(root)
    made: dict[int, Node] = {}
    for entry in (NO_KEYS, *listed.values()):
        made[id(entry)] = merge(defaults, entry)
    return tuple(made[id(listed.get(index, NO_KEYS))] for index in range(count))


def check_documented(root: Node, faults: list[Fault]) -> None:
    """Append a fault for every device of a document, right elsewhere or not, whose values contradict one another."""
    listed = sorted(index for index in entries(root) if 0 <= index < layout.MAX_DEVICES) or [0]
    devices = base_devices(root, listed[-1] + 1)
    for index in listed:
        check_values(root, index, devices[index], faults)


def check_complete(root: Node, index: int, device: Node, faults: list[Fault]) -> None:
    """Append a fault for every key without which there is no device: missing everywhere, or told to be nothing."""
    for key in _REQUIRED:
        said = find(device, key)
        if text(said) or isinstance(said and said.value, dict | tuple):  # the schema says what these are not
            continue
        emptied = _emptied(device, key)
        if emptied is None:
            defaults = find(root, "device_defaults") or root
            faults.append(Fault(root.file, f"device_defaults.{key}", defaults.line, "is missing"))
        else:
            what = "N/A" if emptied.value == NOT_AVAILABLE else "unset"
            place = key if emptied.override else _origin(root, index, key)
            faults.append(Fault(emptied.file, place, emptied.line, f"must not be {what}: no device is without it"))


def _emptied(device: Node, key: str) -> Node | None:
    """What says that the key is N/A, or what takes it away from a device that may have had it; None if nothing does."""
    node: Node | None = device
    for part in key.split("."):
        node = fields(node).get(part)
        if node is not None and (node.value == NOT_AVAILABLE or (node.override and node.value in (None, ""))):
            return node
    return None


def check_values(root: Node, index: int, device: Node, faults: list[Fault]) -> None:
    """Append a fault for every value that contradicts another of the same device; an override is blamed first."""

    def amount(key: str) -> int | None:
        return number(find(device, key))

    def fault(key: str, message: str, *beside: str) -> None:
        overridden = (other for other in (key, *beside) if (node := find(device, other)) is not None and node.override)
        blamed = next(overridden, key)
        node = find(device, blamed)
        if node is not None:
            place = blamed if node.override else _origin(root, index, blamed)
            told = message if blamed == key else f"leaves {key} wrong: {message}"
            faults.append(Fault(node.file, place, node.line, told))

    total = amount("memory.total_bytes") or 0
    used, reserved = amount("memory.used_bytes") or 0, amount("memory.reserved_bytes") or 0
    if total and used + reserved > total:
        key = "memory.used_bytes" if used else "memory.reserved_bytes"
        message = f"{used} used and {reserved} reserved bytes are more than the total of {total}"
        fault(key, message, "memory.reserved_bytes", "memory.total_bytes")
    bar1_total, bar1_used = amount("bar1_memory.total_bytes"), amount("bar1_memory.used_bytes") or 0
    if bar1_total is not None and bar1_used > bar1_total:
        fault(
            "bar1_memory.used_bytes", f"{bar1_used} is more than the total of {bar1_total}", "bar1_memory.total_bytes"
        )
    low, high = amount("power.min_limit_mw"), amount("power.max_limit_mw")
    if low is not None and high is not None and low > high:
        fault("power.min_limit_mw", f"{low} is more than power.max_limit_mw, {high}", "power.max_limit_mw")
    for name in ("enforced_limit_mw", "default_limit_mw", "requested_limit_mw"):
        limit = amount(f"power.{name}")
        if limit is not None and low is not None and high is not None and low <= high and not low <= limit <= high:
            message = f"{limit} must lie from power.min_limit_mw, {low}, to power.max_limit_mw, {high}"
            fault(f"power.{name}", message, "power.min_limit_mw" if limit < low else "power.max_limit_mw")
    slowdown, shutdown = amount("thermal.slowdown_threshold_c"), amount("thermal.shutdown_threshold_c")
    if slowdown and shutdown and slowdown > shutdown:
        message = f"{slowdown} is above thermal.shutdown_threshold_c, {shutdown}"
        fault("thermal.slowdown_threshold_c", message, "thermal.shutdown_threshold_c")
    least, most = amount("load.min") or 0, amount("load.max")
    if most is not None and least > most:
        fault("load.min", f"{least} is more than load.max, {most}", "load.max")
    for entry in items(find(device, "supported_clocks.memory_clocks")):
        fastest, slowest = decimal(find(entry, "graphics_clocks.from")), decimal(find(entry, "graphics_clocks.to"))
        step = find(entry, "graphics_clocks.step")
        width = decimal(step) or 0
        if step is None or fastest is None or slowest is None or width <= 0:
            continue
        if not 0 <= (fastest - slowest) / width < layout.MAX_GRAPHICS_CLOCKS:
            message = f"must give 1 to {layout.MAX_GRAPHICS_CLOCKS} clocks, from the fastest down"
            faults.append(Fault(step.file, "supported_clocks.memory_clocks.graphics_clocks", step.line, message))


def _origin(root: Node, index: int, key: str) -> str:
    """The path of the place that a device's key comes from."""
    for at, entry in enumerate(items(find(root, "devices"))):
        if (number(find(entry, "index")) if find(entry, "index") else at) == index and find(entry, key) is not None:
            return f"devices[{at}].{key}"
    return f"device_defaults.{key}" if find(root, f"device_defaults.{key}") is not None else key
