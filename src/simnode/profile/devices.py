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
from simnode.profile.shapes import number, text

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


def check_complete(root: Node, device: Node, faults: list[Fault]) -> None:
    """Append a fault for every key without which there is no device."""
    for key in _REQUIRED:
        if not text(find(device, key)):
            unset = _unset(device, key)
            if unset is not None:
                faults.append(Fault(unset.file, key, unset.line, "must not be unset: no device is without it"))
                continue
            defaults = find(root, "device_defaults") or root
            faults.append(Fault(root.file, f"device_defaults.{key}", defaults.line, "is missing"))


def _unset(device: Node, key: str) -> Node | None:
    """What takes the key away from a device that may have had it; None if nothing does."""
    node: Node | None = device
    for part in key.split("."):
        node = fields(node).get(part)
        if node is not None and node.override and node.value in (None, ""):
            return node
    return None


def check_values(root: Node, index: int, device: Node, faults: list[Fault]) -> None:
    """Append a fault for every value that contradicts another of the same device."""

    def amount(key: str) -> int | None:
        return number(find(device, key))

    def fault(key: str, message: str) -> None:
        node = find(device, key)
        if node is not None:
            place = key if node.override else _origin(root, index, key)
            faults.append(Fault(node.file, place, node.line, message))

    total = amount("memory.total_bytes") or 0
    used, reserved = amount("memory.used_bytes") or 0, amount("memory.reserved_bytes") or 0
    if total and used + reserved > total:
        key = "memory.used_bytes" if used else "memory.reserved_bytes"
        fault(key, f"{used} used and {reserved} reserved bytes are more than the total of {total}")
    bar1_total, bar1_used = amount("bar1_memory.total_bytes"), amount("bar1_memory.used_bytes") or 0
    if bar1_total is not None and bar1_used > bar1_total:
        fault("bar1_memory.used_bytes", f"{bar1_used} is more than the total of {bar1_total}")
    low, high = amount("power.min_limit_mw"), amount("power.max_limit_mw")
    if low is not None and high is not None and low > high:
        fault("power.min_limit_mw", f"{low} is more than power.max_limit_mw, {high}")
    for name in ("enforced_limit_mw", "default_limit_mw", "requested_limit_mw"):
        limit = amount(f"power.{name}")
        if limit is not None and low is not None and high is not None and low <= high and not low <= limit <= high:
            fault(f"power.{name}", f"{limit} must lie from power.min_limit_mw, {low}, to power.max_limit_mw, {high}")
    slowdown, shutdown = amount("thermal.slowdown_threshold_c"), amount("thermal.shutdown_threshold_c")
    if slowdown and shutdown and slowdown > shutdown:
        fault("thermal.slowdown_threshold_c", f"{slowdown} is above thermal.shutdown_threshold_c, {shutdown}")
    least, most = amount("load.min") or 0, amount("load.max")
    if most is not None and least > most:
        fault("load.min", f"{least} is more than load.max, {most}")
    for entry in items(find(device, "supported_clocks.memory_clocks")):
        fastest, slowest = number(find(entry, "graphics_clocks.from")), number(find(entry, "graphics_clocks.to"))
        step = find(entry, "graphics_clocks.step")
        width = step.value if step is not None and isinstance(step.value, (int, float)) else 0
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
