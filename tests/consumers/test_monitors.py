"""What people watch GPUs with: nvtop on a terminal, nvitop there and by its API."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Node
from tests.consumers.expected import GPU, gpus
from tests.consumers.fetch import Fetched

pytestmark = pytest.mark.consumer

TRAINING = ("--board", "h100", "--set", "load.pattern=training")
SECONDS = 15
READ_BY_NVITOP = """
import json, nvitop
print(json.dumps([
    [gpu.index, gpu.name(), gpu.uuid(), gpu.bus_id(), gpu.memory_total(), gpu.temperature(), gpu.power_usage(),
     gpu.power_limit(), gpu.gpu_utilization(), gpu.processes(), str(gpu.fan_speed())]
    for gpu in nvitop.Device.all()
]))
"""


def with_libraries(program: Fetched) -> list[str | Path]:
    """The command that starts a program which finds what was unpacked beside it."""
    libraries = f"LD_LIBRARY_PATH={program.libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    return ["sh", "-c", f'{libraries} exec "$0" "$@"', program.path]


def readings(screen: str) -> list[tuple[int, int, int]]:
    """Per GPU, what nvtop's screen shows: degrees Celsius, watts, percent."""
    degrees, watts = re.findall(r"TEMP +(\d+)°C", screen), re.findall(r"POW +(\d+) / 700 W", screen)
    percents = re.findall(r"GPU\[\|* *(\d+)%\]", screen)
    return [(int(d), int(w), int(p)) for d, w, p in zip(degrees, watts, percents, strict=False)]


def test_nvtop_shows_every_gpu_at_work(ordinary: Node, program: Obtain) -> None:
    """Names, links, clocks and memory; temperature, power and utilisation that move, together."""
    command = [*with_libraries(program("nvtop")), "-d", "5"]
    with ordinary.terminal(*command, options=TRAINING) as terminal:
        first = terminal.until(lambda screen: len(readings(screen)) == len(gpus()), SECONDS)
        names = re.findall(
            r"Device (\d) \[(.*?)\] PCIe GEN (\d)@(\d+)x RX: +[\d.]+ [GM]iB/s TX: +[\d.]+ [GM]iB/s", first
        )
        assert names == [(str(gpu.index), gpu.name, "5", "16") for gpu in gpus()]
        clocks = [int(clock) for clock in re.findall(r"GPU (\d+)MHz MEM 2619MHz", first)]
        assert len(clocks) == len(gpus())
        assert all(345 < clock <= 1980 for clock in clocks)
        assert len(re.findall(r"MEM\[\|* *[\d.]+Gi/79\.\d+Gi\]", first)) == len(gpus())
        second = terminal.until(lambda screen: readings(screen)[:1] != readings(first)[:1], SECONDS)
        for degrees, watts, percent in readings(first) + readings(second):
            assert 29 < degrees < 87
            assert abs(watts - (68 + 6 * percent)) < 30
        terminal.press("q")
        assert terminal.end(SECONDS) == 0


def test_nvitop_reads_the_values_of_the_profile(ordinary: Node) -> None:
    """Its API: bytes, degrees and milliwatts; a fan that is not there is N/A."""
    assert json.loads(ordinary.output(sys.executable, "-c", READ_BY_NVITOP)) == [
        [gpu.index, gpu.name, gpu.uuid, gpu.bus_id, gpu.memory_total, gpu.temperature, gpu.power, 700_000, 0, {}, "N/A"]
        for gpu in gpus()
    ]


def test_nvitop_shows_every_gpu(ordinary: Node) -> None:
    """`nvitop -1`: one screen on a terminal."""

    def row(gpu: GPU) -> str:
        first = rf"│ +{gpu.index}  {gpu.name.removeprefix('NVIDIA ')} +On │ {gpu.bus_id} Off │ Disabled +0 │"
        return rf"{first}\n│ N/A +{gpu.temperature}C +P0 +{round(gpu.power / 1000)}W / 700W │"

    with ordinary.terminal(sys.executable, "-m", "nvitop", "-1", columns=80, rows=60) as terminal:
        assert terminal.end(SECONDS) == 0
        screen = "\n".join(terminal.lines())
    assert [gpu.index for gpu in gpus() if not re.search(row(gpu), screen)] == [], screen
    assert "No running processes found" in screen
