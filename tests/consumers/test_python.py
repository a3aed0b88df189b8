"""NVML bindings for Python, and what is built on them, read what the profile says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.consumers.conftest import Ended, Node
from tests.consumers.expected import MIB, gpus

pytestmark = pytest.mark.consumer

READ_ALL = """
import json, pynvml as n
n.nvmlInit()
rows = []
for index in range(n.nvmlDeviceGetCount()):
    gpu = n.nvmlDeviceGetHandleByIndex(index)
    rows.append([
        n.nvmlDeviceGetIndex(gpu), n.nvmlDeviceGetName(gpu), n.nvmlDeviceGetUUID(gpu),
        n.nvmlDeviceGetPciInfo(gpu).busId, n.nvmlDeviceGetMemoryInfo(gpu).total,
        n.nvmlDeviceGetTemperature(gpu, n.NVML_TEMPERATURE_GPU), n.nvmlDeviceGetPowerUsage(gpu),
    ])
n.nvmlShutdown()
print(json.dumps(rows))
"""

POLL_IN_A_CHILD = """
import os, pynvml as n
n.nvmlInit()
child = os.fork()
gpu = n.nvmlDeviceGetHandleByIndex(3)
for _ in range(100_000):
    n.nvmlDeviceGetTemperature(gpu, n.NVML_TEMPERATURE_GPU)
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

READ_IN_TWO_THREADS = """
import threading, pynvml as n
n.nvmlInit()
read = []
def poll(index):
    gpu = n.nvmlDeviceGetHandleByIndex(index)
    read.append({n.nvmlDeviceGetUUID(gpu) for _ in range(100_000)})
threads = [threading.Thread(target=poll, args=(index,)) for index in (0, 1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*sorted(uuid for each in read for uuid in each))
"""


@pytest.fixture(scope="module")
def ended(anywhere: Node) -> dict[str, Ended]:
    """How each program ended, all in one node, which costs more than they do."""
    python: tuple[str | Path, ...] = (sys.executable, "-c")
    commands: dict[str, list[str | Path]] = {
        "pynvml": [*python, READ_ALL],
        "gpustat": [sys.executable, "-m", "gpustat", "--json"],
        "fork": [*python, POLL_IN_A_CHILD],
        "threads": [*python, READ_IN_TWO_THREADS],
        "small": ["sh", "-c", 'ulimit -v 200000 && exec "$0" -c "$1"', sys.executable, READ_ALL],
    }
    return dict(zip(commands, anywhere.several(list(commands.values())), strict=True))


def output(ended: Ended) -> str:
    """What it printed, having ended well."""
    assert (ended.status, ended.errors) == (0, "")
    return ended.output


def test_pynvml_reads_the_values_of_the_profile(ended: dict[str, Ended]) -> None:
    """Identity, bus, memory, temperature and power through ctypes."""
    expected = [
        [gpu.index, gpu.name, gpu.uuid, gpu.bus_id, gpu.memory_total, gpu.temperature, gpu.power] for gpu in gpus()
    ]
    assert json.loads(output(ended["pynvml"])) == expected


def test_gpustat_reports_the_values_of_the_profile(ended: dict[str, Ended]) -> None:
    """`gpustat --json`: MiB and whole watts."""
    report = json.loads(output(ended["gpustat"]))
    shown = [
        (gpu["index"], gpu["name"], gpu["uuid"], gpu["memory.total"], gpu["temperature.gpu"]) for gpu in report["gpus"]
    ]
    assert shown == [(gpu.index, gpu.name, gpu.uuid, gpu.memory_total // MIB, gpu.temperature) for gpu in gpus()]
    assert [gpu["processes"] for gpu in report["gpus"]] == [[] for _ in gpus()]


def test_a_monitor_forked_after_init_keeps_polling(ended: dict[str, Ended]) -> None:
    """Parent and child poll 100,000 times each."""
    output(ended["fork"])


def test_threads_read_at_once(ended: dict[str, Ended]) -> None:
    """Each sees its own GPU and nothing else."""
    assert output(ended["threads"]).split() == sorted(gpu.uuid for gpu in gpus()[:2])


def test_a_small_address_space_suffices(ended: dict[str, Ended]) -> None:
    """`ulimit -v 200000` (KiB)."""
    assert output(ended["small"]) == output(ended["pynvml"])
