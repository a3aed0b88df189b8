"""The views of the real nvidia-smi that ask for most: they end well, say what the image says, and never a raw error."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from simnode.profile import Options, compile_state, load_board
from simnode.state import ProcessSpec, Runtime, State
from tests.conftest import Obtain
from tests.nvml_library.conftest import LIBRARY, Library, Scene

pytestmark = pytest.mark.consumer

RELEASES = {"nvidia-smi-535": "535.261.03", "nvidia-smi-550": "550.163.01", "nvidia-smi-555": "555.58.02"}
PROCESSES = (
    ProcessSpec(4242, "C", "/usr/bin/python3", 6000 << 20, 37, 12, 3, 4),
    ProcessSpec(4243, "G", "/usr/lib/xorg/Xorg", 50 << 20, 1, 2),
    ProcessSpec(4244, "C+G", "trainer", 70 << 20),
)
VIEWS = (
    "",
    "-L",
    "-q",
    "-q -x",
    "-q -d MEMORY,UTILIZATION,ECC,TEMPERATURE,POWER,CLOCK,COMPUTE,PIDS,PERFORMANCE,SUPPORTED_CLOCKS,PAGE_RETIREMENT",
    "-q -i 0000:53:00.0",
    "-q -i 1",
    "topo -m",
    "topo -mp",
    "topo -p -i 0,1",
    "topo -c 0",
    "topo -n 4 -i 0",
    "topo -p2p r",
    "topo -C -i 0",
    "nvlink -s",
    "nvlink -c",
    "nvlink -p",
    "nvlink -R",
    "nvlink -e",
    "dmon -c 1 -s pucvmet",
    "pmon -c 1 -s um",
    "--query-compute-apps=pid,process_name,used_memory --format=csv",
    "--query-gpu=index,name,uuid,pci.bus_id,memory.total,temperature.gpu,power.draw,enforced.power.limit --format=csv",
    "--query-supported-clocks=mem,gr --format=csv",
)


def occupied(version: str) -> State:
    """Three GPUs of board h100, the first with processes."""
    state = compile_state(load_board("h100"), Options(gpus=3, driver_version=version), {})
    first, *others = state.runtime.devices
    first = msgspec.structs.replace(first, processes=PROCESSES)
    return msgspec.structs.replace(state, runtime=Runtime((first, *others)))


class Smi:
    """One release of nvidia-smi on one image."""

    def __init__(self, program: Path, scene: Scene) -> None:
        self._program = program
        scene.path.with_name("libnvidia-ml.so.1").symlink_to(LIBRARY)
        self._environ = {
            "LD_LIBRARY_PATH": str(scene.folder),
            "SIMNODE_IMAGE": str(scene.path),
            "PATH": os.environ["PATH"],
        }

    def __call__(self, arguments: str) -> str:
        """Standard output of a view that ends with 0."""
        words = [str(self._program), *arguments.split()]
        done = subprocess.run(words, env=self._environ, capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout[-500:]
        return done.stdout


@pytest.fixture(params=sorted(RELEASES))
def smi(request: pytest.FixtureRequest, program: Obtain, library: Library, tmp_path: Path) -> Smi:
    """Each release, with the driver that it came with."""
    scene = Scene(library, tmp_path)
    scene.publish(occupied(RELEASES[request.param]))
    return Smi(program(request.param).path, scene)


def test_every_view_ends_well(smi: Smi) -> None:
    for view in VIEWS:
        text = smi(view)
        for word in ("ERR!", "Unknown Error", "Insufficient Size", "Function Not Found", "Uninitialized"):
            assert word not in text, view


def test_processes_have_type_name_and_memory(smi: Smi) -> None:
    text = smi("")
    rows = [line.split() for line in text.splitlines() if "4242" in line or "4243" in line or "4244" in line]
    assert [(row[5], row[6], row[7]) for row in rows] == [
        ("C", "/usr/bin/python3", "6000MiB"),
        ("G", "/usr/lib/xorg/Xorg", "50MiB"),
        ("C+G", "trainer", "70MiB"),
    ]


def test_pmon_shows_what_each_process_uses(smi: Smi) -> None:
    rows = [line.split() for line in smi("pmon -c 1").splitlines() if not line.startswith("#")]
    shown = {row[1]: row[2:7] for row in rows if row[1] != "-"}
    assert shown["4242"] == ["C", "37", "12", "3", "4"]
    assert shown["4243"] == ["G", "1", "2", "0", "0"]


def test_the_matrix_shows_nvlink_between_all(smi: Smi) -> None:
    rows = [line.split() for line in smi("topo -m").splitlines() if line.startswith("GPU")]
    assert [row[1:4] for row in rows[:3]] == [["X", "NV18", "NV18"], ["NV18", "X", "NV18"], ["NV18", "NV18", "X"]]


def test_the_long_view_says_what_the_profile_says(smi: Smi) -> None:
    root = ElementTree.fromstring(smi("-q -x"))
    gpu = root.find("gpu")
    assert gpu is not None
    said = {
        "product_name": "NVIDIA H100 80GB HBM3",
        "fb_memory_usage/total": "81559 MiB",
        "pci/pci_bus_id": "00000000:53:00.0",
        "max_clocks/sm_clock": "1980 MHz",
        "ecc_mode/current_ecc": "Enabled",
        "mig_mode/current_mig": "Disabled",
        "temperature/gpu_temp_slow_tlimit_threshold": "-2 C",
    }
    assert {path: gpu.findtext(path) for path in said} == said
    processes = gpu.findall("processes/process_info/pid")
    assert [pid.text for pid in processes] == ["4242", "4243", "4244"]
