"""Profiles in the shape in which others wrote them: their key paths and spellings, their numbers for each board.

Built from two tables: every key path with a value as such profiles write it (tests/profile/known_keys.tsv), and what
differs from board to board (prior.tsv). What a careful hand would quote is not quoted: bus ids and versions are bare.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_OWN = ("uuid", "serial", "buses", "roots", "switches")


def columns() -> dict[str, dict[str, str]]:
    """What is written for each board, by key; "" where such profiles have no such key."""
    _, head, *rows = (_HERE / "prior.tsv").read_text().split("\n")
    names = head.split("\t")[1:]
    cells = [row.split("\t") for row in rows if row]
    return {name: {row[0]: row[at + 1] for row in cells} for at, name in enumerate(names)}


def document(board: str) -> str:
    """The profile of a board."""
    said = columns()[board]
    tree: dict[str, Any] = {}
    for line in (_HERE.parent / "profile" / "known_keys.tsv").read_text().splitlines()[1:]:
        key, value = line.split("\t")
        if not key.startswith("devices[]"):
            _put(tree, key.replace("graphics_clocks[]", "graphics_clocks").split("."), value)
    for key, value in said.items():
        if key not in _OWN and value:
            _put(tree, key.split("."), value)
    for section in ("nvlink", "device_defaults.fabric", "device_defaults.platform", "device_defaults.grace_superchip"):
        if not any(value for key, value in said.items() if key.startswith(f"{section}.")):
            above, _, name = section.rpartition(".")
            (tree[above] if above else tree).pop(name)
    if not said["device_defaults.remapped_rows.availability_histogram.max"]:
        del tree["device_defaults"]["remapped_rows"]["availability_histogram"]
    tree["devices"] = list(_devices(said, "platform" in tree["device_defaults"]))
    tree["pcie_topology"] = {"root_complexes": list(_roots(said["roots"]))}
    if "nvlink" in tree:
        tree["nvlink"].pop("switches")
        if said["switches"]:
            tree["nvlink"]["switches"] = [
                {"bdf": f"0000:{bus}:00.0", "uuid": f"SWX-00000000-0000-0000-0000-0000000000{bus}"}
                for bus in said["switches"].split()
            ]
    return "\n".join(_lines(tree, "")) + "\n"


def _devices(said: dict[str, str], platform: bool) -> Iterator[dict[str, Any]]:
    for index, bus in enumerate(said["buses"].split()):
        entry: dict[str, Any] = {
            "index": str(index),
            "uuid": f"{said['uuid']}{index}",
            "minor_number": str(index),
            "serial": f'"{said["serial"]}{index}"',
            "pci": {"bus_id": f"0000:{bus}:00.0"},
        }
        if platform:
            entry |= {"platform": {"module_id": str(index + 1)}, "grace_cpu_pair": str(index // 2)}
        yield entry


def _roots(said: str) -> Iterator[dict[str, Any]]:
    for numa, root in enumerate(said.split("|")):
        bus, devices = root.split(":")
        listed = ", ".join(f'"0000:{device}:00.0"' for device in devices.split())
        yield {"id": f"pci0000:{bus:0>2}", "numa_node": str(numa), "devices": f"[{listed}]"}


def _put(tree: dict[str, Any], path: list[str], value: str) -> None:
    name, *rest = path
    if name.endswith("[]") and rest:
        entries = tree.setdefault(name.removesuffix("[]"), [{}])
        _put(entries[0], rest, value)
    elif rest:
        _put(tree.setdefault(name, {}), rest, value)
    else:
        tree[name.removesuffix("[]")] = value


def _lines(tree: dict[str, Any], indent: str) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            for entry in value:
                first, *others = _lines(entry, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from others
        else:
            yield f"{indent}{key}: {value}"
