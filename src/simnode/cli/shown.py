"""Answers of a node as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COLUMNS = ("name", "board", "gpus", "driver_version", "since", "state")
_TITLES = ("NAME", "BOARD", "GPUS", "DRIVER", "SINCE", "STATE")


def print_json(value: object) -> int:
    """On one line; returns the exit code of success."""
    print(json.dumps(value))
    return 0


def values(found: Mapping[str, Any], asked: Sequence[str]) -> Iterator[str]:
    """Lines GPU:KEY=VALUE, or node:KEY=VALUE; only the value if there is one, of the very key that was asked for."""
    lines = [(place, key, value) for place, tree in found.items() for key, value in _flat(tree, "")]
    if len(lines) == 1 == len(found) and lines[0][1] in asked:
        yield _shown(lines[0][2])
        return
    for place, key, value in lines:
        yield f"{place}:{key}={_shown(value)}"


def whole_status(answer: Mapping[str, Any]) -> Iterator[str]:
    """What a node is and how it does."""
    if "name" in answer:
        yield f"node {answer['name']}: {answer['board']}, init {answer['init']}, since {_moment(answer['since'])}"
    changed = ", with changes" if answer["overridden"] else ""
    skewed = answer["loaded_version"] != answer["driver_version"]
    skew = f", kernel modules {answer['loaded_version']}" if skewed else ""
    yield f"generation {answer['generation']}{changed}; driver {answer['driver_version']}{skew}"
    if answer["source_error"]:
        yield f"kept as it was, since {answer['source_error']}"
    for name, probe in answer["health"].items():
        yield f"{name}: {'yes' if probe['ok'] else probe['reason']}"
        if name == "ready":
            yield from (f"  {part}: {each['reason']}" for part, each in _waiting(probe["components"]))
    for gpu in answer["gpus"]:
        fault = f"; {fault_line(gpu['fault'])}" if gpu["fault"] else ""
        yield f"GPU {gpu['index']}: {gpu['name']} {gpu['uuid']} at {gpu['pci_bus_id']}{fault}"
    for line in answer.get("log", ()):
        yield f"log: {line}"


def _waiting(components: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts that say what they wait for."""
    for part, each in components.items():
        if not each["ok"] and each["reason"] not in ("", "not ready"):
            yield part, each


def whole_fault(fault: Mapping[str, Any]) -> str:
    """What fails, and how."""
    if fault["gpu"] is None:
        return f"node: version-skew, kernel modules {fault['loaded_version']}, libraries {fault['driver_version']}"
    return f"GPU {fault['gpu']}: {fault['uuid']}: {fault_line(fault)}"


def fault_line(fault: Mapping[str, Any]) -> str:
    """How a GPU fails, or would fail."""
    parts = (fault["mode"] or "", f"XID {fault['xid']}" if fault["xid"] is not None else "")
    line = ", ".join(part for part in parts if part)
    return f"{line}; waiting: {fault['waiting']}" if fault["waiting"] else line


def table(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Nodes below their titles; what is not known of one is a dash."""
    rows = [_TITLES, *(tuple(_cell(node, column) for column in _COLUMNS) for node in nodes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(node: Mapping[str, Any], column: str) -> str:
    known = node.get(column, "")
    if known == "" or (column == "since" and not known):
        return "-"
    return _moment(known) if column == "since" else str(known)


def _moment(since: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))


def _flat(tree: Any, above: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from _flat(value, f"{above}.{key}" if above else key)
    else:
        yield above, tree


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
