"""Keys that are read and checked and have no effect: profiles that were written for more than this node load unchanged.

Who sets one by hand should know, so they are told. The list is held against the compiler by a test: a key of it that
comes to change a State has to leave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simnode.profile.document import Node, fields, items

DEVICE_KEYS = (
    "memory.free_bytes",
    "bar1_memory.free_bytes",
    "power.management_supported",
    "power.power_state",
    "fan.target_speed_percent",
    "retired_pages.single_bit_retirement.addresses",
    "retired_pages.double_bit_retirement.addresses",
    "retired_pages.pending_blacklist",
    "driver_model",
    "virtualization.host_vgpu_mode",
    "features",
    "grace_superchip",
    "topology.default_level",
    "gpm.supported",
    "nvlink_error",
    "grace_cpu_pair",
    "failure.after_calls",
    "failure.probability",
    "failure.seed",
)
"""Of a device, in `device_defaults`, `devices[]` and overrides; a key stands for all below it."""
NODE_KEYS = (
    "nvlink.defaults.counter_seed",
    "nvlink.defaults.error_rate",
    "nvlink.defaults.duty_cycle",
    "nvlink.switches[].uuid",
    "infiniband",
)
"""Of the node's own sections."""
PROFILE_KEYS = (
    *(f"{section}.{key}" for section in ("device_defaults", "devices[]") for key in DEVICE_KEYS),
    *NODE_KEYS,
    "dynamic_metrics_defaults",
)
"""Of a whole document."""


_WAITS = "; a failure that waits for a trigger never comes"


def without_effect(tree: Node, keys: tuple[str, ...]) -> Mapping[str, Node]:
    """Those of `keys` that `tree` gives a value, each with the first place; lists are `name[]`, null is no value."""
    found: dict[str, Node] = {}
    for key, node in _below(tree, ""):
        if key in keys:
            found.setdefault(*_narrowed(key, node))
    return found


def inert(key: str, keys: tuple[str, ...]) -> bool:
    """Whether a dotted key is one of `keys` or lies below one."""
    return any(key == known or key.startswith(f"{known}.") for known in keys)


def note(found: Mapping[str, Node]) -> str:
    """The one line that names them, with their lines where they have any; "" if there are none."""
    shown = [key if node.line is None else f"{key} (line {node.line})" for key, node in found.items()]
    waits = any(key.rpartition(".")[0].endswith("failure") for key in found)
    return f"no effect yet: {', '.join(shown)}{_WAITS if waits else ''}" if shown else ""


def _below(node: Node, above: str) -> Iterator[tuple[str, Node]]:
    for name, child in fields(node).items():
        key = f"{above}.{name}" if above else name
        if child.value is not None:
            yield key, child
        yield from _below(child, key)
        for entry in items(child):
            yield from _below(entry, f"{key}[]")


def _narrowed(key: str, node: Node) -> tuple[str, Node]:
    """The one key below that stands for all of it, if there is only one."""
    while len(fields(node)) == 1:
        ((name, node),) = fields(node).items()
        key = f"{key}.{name}"
    return key, node
