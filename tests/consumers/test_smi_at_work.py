"""nvidia-smi's monitors on a node that trains: figures that are sane, that move, and that move together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Ended, Node
from tests.consumers.expected import GPU, gpus
from tests.consumers.screens import between, matrix, monitored

pytestmark = pytest.mark.consumer

# Any nvidia-smi meets any driver.
RELEASES = ("nvidia-smi-535", "nvidia-smi-550")
DRIVERS = ("535.261.03", "550.163.01")
CYCLES = 5
PROCESSES = (
    "processes=[{pid: 4242, name: /usr/bin/python3, type: C, used_memory_mib: 6000, sm_util: 37, mem_util: 12},"
    "{pid: 4243, name: /opt/render, type: C+G, used_memory_mib: 70, sm_util: 20, mem_util: 8}]"
)
COMMANDS = (
    f"dmon -c {CYCLES} -s pucmt",
    "pmon -c 2 -s um",
    "topo -m",
    "--query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv,noheader",
)


@dataclass(frozen=True)
class AtWork:
    """What one release showed, in the order of COMMANDS."""

    dmon: Ended
    pmon: Ended
    topo: Ended
    apps: Ended

    def figures(self) -> list[dict[str, int]]:
        """The rows of `dmon`, figure by the name of its column."""
        return [{name: int(cell) for name, cell in row.items()} for row in monitored(self.dmon.output)]


@pytest.fixture(scope="module", params=DRIVERS)
def node_at_work(request: pytest.FixtureRequest, ordinary: Node, program: Obtain) -> dict[str, AtWork]:
    """The monitors of both releases, at once, on a training node with two processes per GPU."""
    commands: list[list[str | Path]] = [
        [program(release).path, *command.split()] for release in RELEASES for command in COMMANDS
    ]
    driver = ("--driver-version", request.param)
    options = ("--board", "h100", "--set", "load.pattern=training", "--set", PROCESSES, *driver)
    ended = ordinary.several(commands, options=options, at_once=len(commands))
    count = len(COMMANDS)
    return {release: AtWork(*ended[at * count : (at + 1) * count]) for at, release in enumerate(RELEASES)}


@pytest.fixture(params=RELEASES)
def at_work(node_at_work: dict[str, AtWork], request: pytest.FixtureRequest) -> AtWork:
    """One release's screens, on the driver of its own release and on another."""
    shown = node_at_work[request.param]
    assert [ended.status for ended in (shown.dmon, shown.pmon, shown.topo, shown.apps)] == [0] * len(COMMANDS)
    return shown


def of(gpu: GPU, figures: list[dict[str, int]]) -> list[dict[str, int]]:
    """One GPU's rows."""
    return [row for row in figures if row["gpu"] == gpu.index]


def test_figures_are_those_of_a_gpu_at_work(at_work: AtWork) -> None:
    """Every GPU in every cycle, within what the board can do."""
    figures = at_work.figures()
    assert [row["gpu"] for row in figures] == [gpu.index for gpu in gpus()] * CYCLES
    for row in figures:
        assert 100 < row["pwr"] <= 700
        assert 29 < row["gtemp"] < row["mtemp"] < 95
        assert 5 < row["sm"] <= 100
        assert 0 < row["mem"] <= row["sm"]
        assert row["enc"] == row["dec"] == 0
        assert row["mclk"] == 2619
        assert 345 < row["pclk"] <= 1980
        assert 6000 < row["fb"] <= 81559
        assert 0 < row["rxpci"] < 64_000
        assert 0 < row["txpci"] < 64_000


def test_figures_move(at_work: AtWork) -> None:
    """From cycle to cycle, for every GPU in its own way."""
    rows = [[(row["pwr"], row["sm"]) for row in of(gpu, at_work.figures())] for gpu in gpus()]
    assert all(len(set(cycles)) > 1 for cycles in rows)
    assert len(set(map(tuple, rows))) > 1


def test_figures_move_together(at_work: AtWork) -> None:
    """More utilisation is more memory traffic, power and PCIe traffic, never less."""
    for gpu in gpus():
        rows = sorted(of(gpu, at_work.figures()), key=lambda row: row["sm"])
        for less, more in combinations(rows, 2):
            if more["sm"] - less["sm"] > 1:
                assert less["pwr"] < more["pwr"]
                assert less["mem"] <= more["mem"]
                assert less["rxpci"] < more["rxpci"]


def test_processes_share_the_load(at_work: AtWork) -> None:
    """`pmon`: each process of each GPU in each cycle, with type, memory and name; utilisation in their proportion."""
    rows = monitored(at_work.pmon.output)
    processes = (("4242", "C", "6000", "python3"), ("4243", "C+G", "70", "render"))
    assert [(row["gpu"], row["pid"], row["type"], row["fb"], row["command"]) for row in rows] == [
        (str(gpu.index), *process) for gpu in gpus() for process in processes
    ] * 2
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        more, less = int(first["sm"]), int(second["sm"])
        assert more + less <= 100
        assert 0 < less < more
        assert abs(more * 20 / 37 - less) <= 1


def test_what_processes_use_moves(at_work: AtWork) -> None:
    """`pmon`: from one cycle to the next, for some GPU at least."""
    used = [row["sm"] for row in monitored(at_work.pmon.output)]
    assert used[: len(used) // 2] != used[len(used) // 2 :]


def test_compute_processes_are_listed(at_work: AtWork) -> None:
    """`--query-compute-apps`: with their full names; what only draws is none."""
    assert sorted(at_work.apps.output.splitlines()) == sorted(
        f"{gpu.uuid}, {process}"
        for gpu in gpus()
        for process in ("4242, /usr/bin/python3, 6000 MiB", "4243, /opt/render, 70 MiB")
    )


def test_the_topology_is_that_of_an_idle_node(at_work: AtWork) -> None:
    """Load changes nothing in `topo -m`."""
    assert matrix(at_work.topo.output) == between(len(gpus()), "NV18")
