"""A /sys/devices/system of another machine: the NUMA nodes and CPUs that a board's root complexes name."""

from __future__ import annotations

from pathlib import Path

from simnode.nvml.topology import cpus
from simnode.state import State


def build(root: Path, state: State) -> None:
    """Write below `root` what hwloc reads of NUMA nodes and CPUs; each node is a package, each CPU a core."""
    nodes = {each.numa_node: cpus(each.cpu_affinity) for each in state.node_shape.topology.root_complexes}
    everywhere = frozenset().union(*nodes.values())
    for name in ("online", "possible", "present"):
        _put(root / "cpu" / name, _list(everywhere))
        _put(root / "node" / name, _list(nodes))
    for number, held in nodes.items():
        place = root / "node" / f"node{number}"
        _put(place / "cpumap", _mask(held, everywhere))
        _put(place / "meminfo", f"Node {number} MemTotal: 1048576 kB")
        _put(place / "distance", " ".join("10" if other == number else "20" for other in sorted(nodes)))
        for cpu in held:
            _cpu(root / "cpu" / f"cpu{cpu}" / "topology", cpu, number, held, everywhere)


def _cpu(place: Path, cpu: int, package: int, beside: frozenset[int], everywhere: frozenset[int]) -> None:
    _put(place / "core_id", str(cpu))
    _put(place / "physical_package_id", str(package))
    for name in ("thread_siblings", "core_cpus"):
        _put(place / name, _mask(frozenset([cpu]), everywhere))
    for name in ("core_siblings", "package_cpus"):
        _put(place / name, _mask(beside, everywhere))


def _list(numbers: frozenset[int] | dict[int, frozenset[int]]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _mask(numbers: frozenset[int], everywhere: frozenset[int]) -> str:
    mask = sum(1 << number for number in numbers)
    words = max(everywhere) // 32 + 1
    return ",".join(f"{mask >> 32 * at & 0xFFFF_FFFF:08x}" for at in reversed(range(words)))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
