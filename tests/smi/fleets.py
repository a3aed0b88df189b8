"""Nodes of many GPUs, each in a condition of its own: one screen shows what many would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from simnode.nvml.cells import CELLS, DEVICE, NODE
from simnode.profile import Options, compile_state, load_board
from simnode.state import LinkSpec, Refusal, State, Value
from tests.smi.conditions import READINGS
from tests.smi.nodes import DRIVER, change, encoded, linked, node

MOST_GPUS = 64
CODES = (3, 4, 6, 15, 16, 21, 25, 26, 999)
# Those in which a number is no reading of a GPU, but says how the image is to be read.
NOT_READINGS = {"memory.total_bytes", "memory.reserved_bytes", "pci.domain", "architecture"}
MILLIWATTS = (0, 1, 5, 500, 994, 995, 999, 1000, 1005, 1006, 1015, 1234, 1235, 68905, 68915, 123455, 699995, 12345675)
WATTS = ("power.current_draw_mw", "power.average_draw_mw", "power.requested_limit_mw", "power.min_limit_mw")
BYTES = (0, 1, 2**20 - 1, 2**20, 2**20 + 1, 5 * 2**30 + 3)
REASONS = "clocks_throttle_reasons."
SWITCH = "0000:05:00.0"
BOARDS = ("a100", "gb200", "l40s", "t4")


def fleet(each: Iterable[Mapping[str, Value]]) -> State:
    """A node with a GPU for each of these readings."""
    readings = list(each)
    state = node(len(readings))
    for gpu, values in enumerate(readings):
        state = change(state, values, gpu)
    return state


def _numbers() -> State:
    """Every cell counts: 0 on the first GPU, 1 on the second, and so on; what is beyond all words on the last."""
    words = [cell.key for cell in CELLS if cell.kind in ("word", "gauge", "wide") and cell.key not in NOT_READINGS]
    signed = [cell.key for cell in CELLS if cell.kind == "int"]
    readings: list[dict[str, Value]] = [
        dict.fromkeys(words, number) | dict.fromkeys(signed, -number) for number in (*range(40), 77777)
    ]
    for reading in readings:
        reading["retired_pages.single_bit_retirement.count"] = 0
    return fleet(readings)


def _reasons() -> State:
    """Each reason known or not, at work or not; the masks refused."""
    masks: list[tuple[Value, Value]] = [(1 << bit, (1 << bit) - 1 << at) for bit in range(9) for at in (0, 1)]
    masks += [(0x1FF, 0), (0x1FF, 2**64 - 1), (0, 2**64 - 1), (2**64 - 1, 0x1FF)]
    masks += [(Refusal(code), 0x1FF) for code in CODES] + [(0x1FF, Refusal(code)) for code in CODES]
    return fleet({f"{REASONS}supported": known, f"{REASONS}active": active} for known, active in masks)


def _refused(first: int, code: int) -> State:
    return fleet({cell.key: Refusal(code)} for cell in CELLS[first : first + MOST_GPUS])


def _all_refused() -> State:
    """Everything, by each code."""
    return fleet(dict.fromkeys((cell.key for cell in CELLS if cell.key != "uuid"), Refusal(code)) for code in CODES)


VALUES: dict[str, Callable[[], State]] = {
    "readings": partial(fleet, READINGS.values()),
    "numbers": _numbers,
    "powers": partial(fleet, [dict.fromkeys(WATTS, mw) for mw in MILLIWATTS]),
    "sizes": partial(fleet, [{"memory.used_bytes": size, "memory.reserved_bytes": size} for size in BYTES]),
    "reasons": _reasons,
    "domains": partial(fleet, [{"pci.domain": domain} for domain in (0, 1, 0xFFFF, 0x12345)]),
    "fabric": partial(fleet, [{"fabric.state": state, "fabric.status": at} for state in range(5) for at in range(4)]),
    "retired-pages": partial(fleet, [{"retired_pages.single_bit_retirement.count": at} for at in (0, 1, 70)]),
    "all-refused-by-each-code": _all_refused,
}
"""What a csv view tells, by what differs between the GPUs of the node."""

REFUSALS: dict[str, Callable[[], State]] = {
    f"{first}-by-{code}": partial(_refused, first, code)
    for first in range(0, len(CELLS), MOST_GPUS)
    for code in (3, 999)
}
"""A GPU for each cell that is refused, from the first of these on."""


def _links(links: Mapping[int, Sequence[LinkSpec]], gpus: int = 6) -> bytes:
    return encoded(linked(node(gpus), links))


def _switched(*active: bool) -> tuple[LinkSpec, ...]:
    return tuple(LinkSpec(up, "switch", SWITCH, at) for at, up in enumerate(active))


def _bridge(gpu: int, *active: bool) -> tuple[LinkSpec, ...]:
    address = node(6).devices[gpu].pci_bus_id
    return tuple(LinkSpec(up, "gpu", address) for up in active)


def _masks(cpus: Sequence[Iterable[int]], nodes: Sequence[Iterable[int]]) -> bytes:
    """A node whose GPUs are near these CPUs and NUMA nodes."""
    block = bytearray(encoded(node(len(cpus))))
    for gpu, numbers in enumerate(zip(cpus, nodes, strict=True)):
        for name, near in zip(("cpu_affinity", "memory_affinity"), numbers, strict=True):
            start = NODE.size + gpu * DEVICE.size + DEVICE.offsets[name]
            length = min(at for at in DEVICE.offsets.values() if at > DEVICE.offsets[name]) - DEVICE.offsets[name]
            mask = sum(1 << number for number in set(near) if number < 8 * length)
            block[start : start + length] = mask.to_bytes(length, "little")
    return bytes(block)


def _levels() -> bytes:
    """A node in which every two GPUs are at another distance and reach one another in another way."""
    block = bytearray(encoded(node(8)))
    for gpu in range(8):
        start = NODE.size + gpu * DEVICE.size
        for other in range(8):
            block[start + DEVICE.offsets["p2p"] + other] = (gpu + other) % 8
            level = (0, 10, 20, 30, 40, 50, 60, 99)[(gpu + other) % 8]
            block[start + DEVICE.offsets["ancestor"] + other] = level
    return bytes(block)


def _ranges(text: str) -> list[int]:
    pairs = [part.partition("-") for part in text.split(",") if part]
    return [number for first, _, last in pairs for number in range(int(first), int(last or first) + 1)]


NEAR_CPUS: tuple[str, ...] = (
    "",
    "0",
    "0-1023",
    "0,2,4,6,8,10,12",
    "1,3,5-7,9-11,100-200,300",
    "0-1,4-5,8-9,12-13",
    "1000-1023",
)
NEAR_CPUS += ("100-150,200-250", "1,3,5,7,10,12,14", "1-3,10-13,200-230", "1000-1010,1012-1015", "0-55,112-167")
NEAR_NODES: tuple[str, ...] = ("", "0", "0-5", "0,2-17", "1,18-33", "63", "1,3,5,7,9,11,13,15", *["1"] * 5)


def _board(name: str) -> bytes:
    return encoded(compile_state(load_board(name), Options(driver_version=DRIVER), {}))


def _refusing(key: str, code: int) -> bytes:
    return encoded(change(node(3), {key: Refusal(code)}, 1))


LINKS: dict[str, Callable[[], bytes]] = {
    "partly-down": partial(
        _links,
        {
            0: _switched(*[True] * 18),
            1: _switched(*[False] * 18),
            2: _switched(*[True] * 9, *[False] * 9),
            3: _switched(*[at % 3 != 0 for at in range(18)]),
            4: _switched(*[False] * 17, True),
            5: (),
        },
    ),
    "bridges": partial(
        _links,
        {0: _bridge(1, True, True, False, True), 1: _bridge(0, True, True, False, True), 2: _bridge(3, True), 3: ()},
    ),
    "none": partial(_links, dict.fromkeys(range(6), ())),
    "architectures": lambda: encoded(fleet({"architecture": number} for number in range(12))),
    "numa-nodes": lambda: encoded(fleet({"numa_node": number} for number in (0, 2, 10, Refusal(3), Refusal(999)))),
    "near": lambda: _masks([_ranges(text) for text in NEAR_CPUS], [_ranges(text) for text in NEAR_NODES]),
    "levels": _levels,
    **{f"board-{board}": partial(_board, board) for board in BOARDS},
    **{
        f"{key}-{code}": partial(_refusing, key, code)
        for key in ("brand", "architecture", "pci.bus", "name", "uuid")
        for code in (3, 999)
    },
}
"""What is published, by what it is in which links or distances differ."""
