"""Which GPUs a node has and what makes each of them this one: how many, and their UUIDs, serials, minors and bus ids.

What the profile lists is kept. What it does not list is synthesised from the listed pattern, the same every time and
never equal to anything listed, up to the capacity of the image.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from simnode.nvml import layout
from simnode.profile.document import Node, find, items
from simnode.profile.faults import Fault, quoted
from simnode.profile.shapes import number, text
from simnode.state import RootComplex

_BARE_PROFILE_GPUS = 8  # a profile that lists no device at all describes the usual eight
_LAST_BUS = 0xFF
_LAST_DOMAIN = 0xFFFF


class Identity(Struct, frozen=True):
    """What makes a GPU this one; only a serial may be another's too, where two GPUs make a board.

    `pdi`, `module_id` and `fabric_guid` are None where the profile knows none.
    """

    uuid: str
    minor_number: int
    serial: str
    pci_bus_id: str
    pdi: int | None
    module_id: int | None
    fabric_guid: int | None


def gpu_count(root: Node, option: int | None, environ: Mapping[str, str], faults: list[Fault]) -> int:
    """How many GPUs: option > GPU_COUNT > system.num_devices > the entries of `devices`."""
    given = environ.get("GPU_COUNT", "")
    form = f"must be a number of GPUs from 0 to {layout.MAX_DEVICES}"
    if option is not None:
        if not 0 <= option <= layout.MAX_DEVICES:
            faults.append(Fault("--gpus", "", None, f"{form}, not {option}"))
            return 0
        return option
    if given:
        if not re.fullmatch("[0-9]{1,4}", given) or int(given) > layout.MAX_DEVICES:
            faults.append(Fault("environment", "GPU_COUNT", None, f"{form}, not {quoted(given)}"))
            return 0
        return int(given)
    wanted = number(find(root, "system.num_devices"))
    if wanted is not None:
        return wanted
    devices = find(root, "devices")
    return _BARE_PROFILE_GPUS if devices is None else len(items(devices))


def entries(root: Node) -> dict[int, Node]:
    """The entries of `devices` by index: the `index` key, else the position."""
    found: dict[int, Node] = {}
    for position, entry in enumerate(items(find(root, "devices"))):
        index = number(find(entry, "index"))
        found.setdefault(position if index is None else index, entry)
    return found


def bus_id(written: str) -> str:
    """A bus id in State's form: lower case, a domain of four digits unless it needs more."""
    domain, bus, rest = written.lower().split(":")
    return f"{int(domain, 16):04x}:{bus}:{rest}"


def bus_of(address: str) -> int:
    """The bus number of a bus id in State's form."""
    return int(address.split(":")[1], 16)


def root_id(written: str) -> str:
    """A root complex's id in State's form: `pciDDDD:BB`, lower case."""
    domain, bus = written.lower().removeprefix("pci").split(":")
    return f"pci{int(domain, 16):04x}:{bus}"


def uuid_of(digits: str) -> str:
    """A UUID in its usual form, from up to 32 hexadecimal digits with or without dashes; what is missing is 0."""
    digits = digits.replace("-", "").lower().ljust(32, "0")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def identities(
    root: Node, count: int, reserved: Iterable[str] = ()
) -> tuple[tuple[Identity, ...], tuple[RootComplex, ...]]:
    """The identities of `count` GPUs, and the PCI roots they sit below. The document must have been checked.

    `reserved`: bus ids that no GPU is given that does not have one.
    """
    listed = entries(root)
    defaults = find(root, "device_defaults")
    roots = _root_complexes(root)
    buses = {index: bus_id(text(node)) for index, node in _listed(listed, "pci.bus_id")}
    taken = set(buses.values()) | {bus_id(text(find(switch, "bdf"))) for switch in items(find(root, "nvlink.switches"))}
    roots = _place(roots, buses, taken, count, reserved)
    uuids = {index: "GPU-" + text(node)[4:].lower() for index, node in _listed(listed, "uuid")}
    minors = {index: number(node) or 0 for index, node in _listed(listed, "minor_number")}
    serials = {index: text(node) for index, node in _listed(listed, "serial")}
    modules = {index: number(node) or 0 for index, node in _listed(listed, "platform.module_id")}
    pdis = {index: number(node) or 0 for index, node in _listed(listed, "pdi")}
    guids = {index: number(node) or 0 for index, node in _listed(listed, "platform.fabric_guid")}
    _extend_uuids(uuids, count, text(find(defaults, "name")))
    _extend_numbers(minors, count, 0)
    if modules:
        _extend_numbers(modules, count, min(modules.values()))
    for numbers in filter(None, (pdis, guids)):
        _extend_numbers(numbers, count, min(numbers.values()), _step(numbers))
    shared_serial = text(find(defaults, "serial"))
    if not shared_serial:
        _extend_serials(serials, count)
    made = tuple(
        Identity(
            uuids[index],
            minors[index],
            serials.get(index, shared_serial),
            buses[index],
            pdis.get(index),
            modules.get(index),
            guids.get(index),
        )
        for index in range(count)
    )
    return made, roots


def _listed(listed: Mapping[int, Node], key: str) -> Iterable[tuple[int, Node]]:
    for index, entry in sorted(listed.items()):
        node = find(entry, key)
        if node is not None and node.value not in ("", "N/A"):
            yield index, node


def _root_complexes(root: Node) -> tuple[RootComplex, ...]:
    made = []
    for entry in items(find(root, "pcie_topology.root_complexes")):
        numa = number(find(entry, "numa_node"))
        devices = tuple(bus_id(text(device)) for device in items(find(entry, "devices")))
        affinity = text(find(entry, "cpu_affinity"))
        made.append(RootComplex(root_id(text(find(entry, "id"))), -1 if numa is None else numa, devices, affinity))
    return tuple(made)


def _place(
    roots: tuple[RootComplex, ...], buses: dict[int, str], taken: set[str], count: int, reserved: Iterable[str]
) -> tuple[RootComplex, ...]:
    """Give every GPU without a bus id one: first what the roots declare and nobody has, then free buses below them."""
    placed = [list(root.device_bdfs) for root in roots]
    declared = [bdf for devices in placed for bdf in devices if bdf not in taken]
    taken.update(declared, reserved)
    for index in range(count):
        if index in buses:
            continue
        if declared:
            buses[index] = declared.pop(0)
            continue
        emptiest = min(range(len(roots)), key=lambda at: (len(placed[at]), at)) if roots else 0
        start = (roots[emptiest].id if roots else buses.get(0, "0000:00")).removeprefix("pci").split(":")
        buses[index] = _free_bus(int(start[0], 16), int(start[1], 16), taken)
        taken.add(buses[index])
        if roots:
            placed[emptiest].append(buses[index])
    return tuple(
        RootComplex(root.id, root.numa_node, tuple(devices), root.cpu_affinity)
        for root, devices in zip(roots, placed, strict=True)
    )


def _free_bus(domain: int, bus: int, taken: set[str]) -> str:
    """The next bus of which nobody has device 0, behind `bus`, else from the domain's start, else in a later domain."""
    used = {bdf.rsplit(":", 1)[0] for bdf in taken}
    while True:
        for candidate in (*range(bus + 1, _LAST_BUS + 1), *range(1, bus + 1)):
            if f"{domain:04x}:{candidate:02x}" not in used:
                return f"{domain:04x}:{candidate:02x}:00.0"
        domain = (domain + 1) & _LAST_DOMAIN
        bus = 0


def _extend_uuids(uuids: dict[int, str], count: int, name: str) -> None:
    stem = next(iter(uuids.values()), f"GPU-{zlib.crc32(name.encode()):08x}-0000-0000-0000-000000000000")[:-12]
    used = set(uuids.values())
    for index in range(count):
        if index not in uuids:
            uuids[index] = _unused((f"{stem}{tail:012x}" for tail in range(index, 1 << 32)), used)


def _step(numbers: Mapping[int, int]) -> int:
    """How far apart the smallest two are: a PDI and a GUID may take turns in one row."""
    lowest = sorted(numbers.values())[:2]
    return max(lowest[-1] - lowest[0], 1)


def _extend_numbers(numbers: dict[int, int], count: int, lowest: int, step: int = 1) -> None:
    used = set(numbers.values())
    for index in range(count):
        if index not in numbers:
            value = lowest + index * step
            if value in used:
                value = next(value for value in range(lowest, lowest + 1024 * step, step) if value not in used)
            numbers[index] = value
            used.add(value)


def _extend_serials(serials: dict[int, str], count: int) -> None:
    """The serial of a board goes to as many GPUs as the most that share one in the profile."""
    decimal = {index: serial for index, serial in serials.items() if serial.isascii() and serial.isdigit()}
    if not decimal:
        return
    first, pattern = next(iter(decimal.items()))
    shared = max(Counter(serials.values()).values())
    used = set(serials.values())
    boards = {index // shared: serial for index, serial in serials.items()}
    for index in range(count):
        if index not in serials:
            board = index // shared
            if shared == 1 or board not in boards:
                start = int(pattern) + max(index - first, 0) // shared
                serial = (f"{value:0{len(pattern)}d}" for value in range(start, start + (1 << 20)))
                boards[board] = _unused(serial, used)
            serials[index] = boards[board]


def _unused(candidates: Iterable[str], used: set[str]) -> str:
    chosen = next(candidate for candidate in candidates if candidate not in used)
    used.add(chosen)
    return chosen
