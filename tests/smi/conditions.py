"""Every condition that changes a screen, by a name that says what it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from simnode.state import ProcessSpec, Refusal, State, Value
from tests.smi.nodes import (
    OTHERS_MEMORY,
    Partition,
    addressed,
    change,
    encoded,
    lost,
    named,
    node,
    partitioned,
    process,
    reading,
    refusing,
    running,
    with_instances,
)

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz"
LONG_PATH = "/opt/applications/inference/releases/current/bin/python3.11"
ODD_NAMES = ("<a>&'b'\"", "a,b", ",", "  a  b ", "   ", " a" * 20, "x " * 20, "%s%n", "\t", "漢字", "[N/A]", "a/ b")
TIB = 1 << 40
DRIVERS = ("470.256.02", "535.261.03", "570.124.06", "580.65.06")

# The cells that the table shows, each with the name that its conditions bear.
CELLS = {
    "persistence": "persistence_mode",
    "display": "display.active",
    "ecc": "ecc.mode_current",
    "ecc-errors": "ecc.errors.volatile.double_bit.total",
    "mig-mode": "mig.mode_current",
    "fan": "fan.speed_percent",
    "temperature": "thermal.temperature_gpu_c",
    "performance-state": "performance_state",
    "power": "power.current_draw_mw",
    "power-limit": "power.enforced_limit_mw",
    "memory": "memory.total_bytes",
    "utilization": "utilization.gpu",
    "compute-mode": "compute_mode",
    "name": "name",
    "uuid": "uuid",
    "bus-id": "pci.bus",
}
CODES = {"not-supported": 3, "no-permission": 4, "not-found": 6, "lost": 15, "no-data": 21, "unknown": 999}
# nvmlReturn_t that a memory cell spells out
WORDS = (1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 999)

READINGS: dict[str, dict[str, Value]] = {
    "persistence-off": {"persistence_mode": 0},
    "display-on": {"display.active": 1},
    "ecc-off": {"ecc.mode_current": 0, "ecc.mode_pending": 0},
    "ecc-to-be-on": {"ecc.mode_current": 0, "ecc.mode_pending": 1},
    "ecc-to-be-off": {"ecc.mode_current": 1, "ecc.mode_pending": 0},
    "ecc-errors": {"ecc.errors.volatile.double_bit.total": 12345},
    "ecc-errors-most": {"ecc.errors.volatile.double_bit.total": 2**64 - 1, "ecc.mode_pending": 0},
    "mig-to-be-on": {"mig.mode_current": 0, "mig.mode_pending": 1},
    "mig-to-be-off": {"mig.mode_current": 1, "mig.mode_pending": 0},
    "mig-on-empty": {"mig.mode_current": 1, "mig.mode_pending": 1},
    "mig-on-ecc-off": {"mig.mode_current": 1, "mig.mode_pending": 1, "ecc.mode_current": 0},
    "fan-still": {"fan.speed_percent": 0},
    "fan-full": {"fan.speed_percent": 100},
    "fan-beyond": {"fan.speed_percent": 12345},
    "cold": {"thermal.temperature_gpu_c": 0},
    "hot": {"thermal.temperature_gpu_c": 104},
    "burning": {"thermal.temperature_gpu_c": 1000},
    "p8": {"performance_state": 8},
    "p12": {"performance_state": 12},
    "p-unknown": {"performance_state": 32},
    "power-none": {"power.current_draw_mw": 0},
    "power-below-a-watt": {"power.current_draw_mw": 999},
    "power-truncated": {"power.current_draw_mw": 699999, "power.enforced_limit_mw": 699999},
    "power-kilowatt": {"power.current_draw_mw": 1012345, "power.enforced_limit_mw": 1200000},
    "power-limit-beyond": {"power.enforced_limit_mw": 12345678},
    "memory-full": {"memory.used_bytes": 80 << 30},
    "memory-one-byte": {"memory.used_bytes": 1},
    "memory-none": {"memory.total_bytes": 0, "memory.reserved_bytes": 0, "memory.used_bytes": 0},
    "memory-beyond-100-gb": {"memory.total_bytes": 309220868096, "memory.used_bytes": 150 * 10**9},
    "memory-beyond-a-tib": {"memory.total_bytes": 2 * TIB, "memory.used_bytes": TIB},
    "memory-beyond-the-cell": {"memory.total_bytes": 200 * TIB, "memory.used_bytes": 100 * TIB},
    "busy": {"utilization.gpu": 100, "utilization.memory": 47},
    "exclusive-thread": {"compute_mode": 1},
    "prohibited": {"compute_mode": 2},
    "exclusive-process": {"compute_mode": 3},
    "compute-mode-unknown": {"compute_mode": 4},
}

PROCESSES: dict[str, tuple[ProcessSpec, ...]] = {
    "compute": (process(4242),),
    "graphics": (process(1201, "G", "/usr/lib/xorg/Xorg", 4),),
    "compute-and-graphics": (process(77, "C+G", "blender", 1000),),
    "mps-client": (process(78, "M", "nvidia-cuda-mps-server", 30),),
    "twice-in-different-lists": (
        process(9, "C", "first", 1),
        process(9, "G", "second", 2),
        process(9, "M", "third", 3),
    ),
    "twice-in-one-list": (process(9, "C", "first", 1), process(9, "C", "second", 2), process(9, "G", "third", 3)),
    "by-pid": (process(30), process(10, "G"), process(20, "M"), process(5, "C+G"), process(10)),
    "pid-wide": (process(4194304), process(12345678), process(2147483647)),
    "name-fits": (process(1, name="x" * 38),),
    "name-by-one-too-long": (process(1, name="x" * 39),),
    "name-long": (process(1, name=LONG_PATH),),
    "name-longest": (process(1, name=ALPHABET * 3),),
    "name-with-arguments": (process(1, name="ollama runner --model /root/.ollama/models/blobs --port 1"),),
    "name-cut-inside-a-letter": (process(1, name="é" * 30),),
    "name-odd": tuple(process(pid, name=name) for pid, name in enumerate(ODD_NAMES, 1)),
    "name-empty": (process(1, name=""), process(2)),
    "only-name-empty": (process(1, name=""),),
    "memory-unknown": (process(1, used=OTHERS_MEMORY),),
    "memory-rounded-down": (process(1, used=(2 << 20) - 1),),
    "memory-beyond-100-gb": (process(1, mib=123456),),
    "memory-beyond-a-tib": (process(1, mib=1234567),),
    "many": tuple(process(pid, ("C", "G", "C+G", "M")[pid % 4], f"worker-{pid}", pid) for pid in range(256, 0, -1)),
}

THREE = Partition(1, 0, "3g.40gb", 60, (3, 3, 0, 3, 0), 40448, 1234, 65535)
PARTITIONS: dict[str, dict[int, tuple[Partition, ...]]] = {
    "one": {0: (THREE,)},
    "seven": {0: tuple(Partition(7 + i, 0) for i in range(7))},
    "on-two-gpus": {0: (THREE, Partition(2, 0)), 1: (Partition(13, 0),)},
    "sharing-an-instance": {0: (THREE, Partition(1, 1, "1c.3g.40gb"), Partition(2, 0))},
    "sharing-apart": {0: (THREE, Partition(2, 0), Partition(1, 1, "1c.3g.40gb"), Partition(2, 1), Partition(5, 0))},
    "with-a-gap": {0: (THREE, Partition(9, 9, present=False), Partition(9, 0))},
    "long-profile": {0: (Partition(1, 0, "1g.10gb+me.all.and.more"), Partition(2, 0, "1g.10gb+me"))},
    "wide": {0: (Partition(123, 4567, "7g.80gb", 132, (10, 100, 1000, 10000, 7), 1 << 21, 1 << 20, 1 << 24),)},
}


Make = Callable[[], State]


def _states() -> dict[str, Make]:
    made: dict[str, Make] = {f"gpus-{count}": partial(node, count) for count in (0, 1, 8, 16, 64)}
    made |= {key: partial(reading, values) for key, values in READINGS.items()}
    made["readings-differ"] = partial(reading, READINGS["power-kilowatt"] | READINGS["hot"], gpus=3, only=1)
    for name, key in CELLS.items():
        made |= {f"{name}-{word}": partial(refusing, key, code=code) for word, code in CODES.items()}
    made |= {f"memory-words-{code}": partial(refusing, "memory.total_bytes", code=code) for code in WORDS}
    made["all-refused"] = partial(refusing, *CELLS.values(), code=3)
    made["all-erring"] = partial(refusing, *CELLS.values(), code=999)
    made["names"] = partial(named, "X", "NVIDIA A100-SXM4-80GB", *(ALPHABET[:length] for length in (26, 27, 28, 62)))
    made["addresses"] = partial(addressed, "0000:00:00.0", "FFFF:FF:1F.0", "abcd:01:02.0")
    made["lost-first"] = partial(lost, 0)
    made["lost-middle"] = partial(lost, 2)
    made["lost-two"] = partial(lost, 1, 3)
    made["lost-all"] = partial(lost, 0, 1, gpus=2)
    made |= {f"sick-{code}": partial(lost, 1, gpus=3, code=code) for code in (4, 6, 16, 17, 999)}
    made |= {f"driver-{version}": partial(node, driver=version) for version in DRIVERS}
    made |= {f"processes-{name}": partial(running, *processes) for name, processes in PROCESSES.items()}
    made |= {f"mixed-{seed}": partial(_mixed, seed) for seed in range(20)}
    made["processes-on-one-gpu"] = partial(running, process(1), process(2, "G"), gpus=4, only=2)
    return made


def _mixed(seed: int) -> State:
    """Eight GPUs, each in several conditions at once."""
    random = Random(seed)
    state = running(*PROCESSES[random.choice(sorted(PROCESSES))], gpus=8, only=random.randrange(8))
    for gpu in range(8):
        for values in random.sample(list(READINGS.values()), 6):
            state = change(state, values, gpu)
        for key in random.sample(sorted(CELLS.values()), random.randrange(4)):
            state = change(state, {key: Refusal(random.choice(list(CODES.values())))}, gpu)
    return state


def _published(make: Make) -> bytes:
    return encoded(make())


def _partitioned(gpus: dict[int, tuple[Partition, ...]], processes: tuple[ProcessSpec, ...] = ()) -> bytes:
    values: dict[str, Value] = {"mig.mode_current": 1, "mig.mode_pending": 1, "mig.max_gpu_instances": 7}
    state = running(*processes)
    for gpu in gpus:
        state = change(state, values, gpu)
    return partitioned(state, gpus)


def _processes_on_partitions() -> bytes:
    block = _partitioned(PARTITIONS["on-two-gpus"], (process(1), process(2, "C+G"), process(3), process(4, "G")))
    for gpu, instances in {0: {0: (1, 0), 1: (2, 0), 2: (1, 0)}, 1: {0: (13, 0), 3: (13, 0)}}.items():
        block = with_instances(block, gpu, instances)
    return block


CONDITIONS: dict[str, Callable[[], bytes]] = {
    **{name: partial(_published, make) for name, make in _states().items()},
    **{f"mig-{name}": partial(_partitioned, gpus) for name, gpus in PARTITIONS.items()},
    "mig-with-processes": _processes_on_partitions,
    "mig-beside-processes-of-none": partial(_partitioned, PARTITIONS["one"], (process(1),)),
}
"""What is published, by the name of the condition."""
