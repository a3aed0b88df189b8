"""The views of the real nvidia-smi that ask for most: they end well, say what the image says, and never a raw error."""

from __future__ import annotations

import os
import re
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
    "nvlink -gt d",
    "nvlink -gt r",
    "nvlink -gLowPwrInfo",
    "topo -p2p n",
    "topo -M -i 0",
    "topo -gnid -i 0",
    "dmon -c 1 -s pucvmet",
    "dmon --gpm-metrics 1,10,60 -c 1",
    "pmon -c 1 -s um",
    "--query-compute-apps=pid,process_name,used_memory --format=csv",
    "--query-gpu=index,name,uuid,pci.bus_id,memory.total,temperature.gpu,power.draw,enforced.power.limit --format=csv",
    "--query-supported-clocks=mem,gr --format=csv",
    "--query-retired-pages=gpu_name,retired_pages.address --format=csv",
    "--query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.failure --format=csv",
    "--query-accounted-apps=gpu_name,pid --format=csv",
    "-q -u",
    "-B",
    "conf-compute -f",
    "conf-compute -gc",
    "conf-compute -gm",
    "conf-compute -grs",
    "compute-policy -l",
    "boost-slider -l",
    "gpm -g",
    "drain -p 0000:53:00.0 -q",
    "vgpu -q",
)
SINCE_550 = ("pci -gErrCnt", "--version", "conf-compute -mgm")
DENIED = (
    "-pm 0", "-pl 400", "-e 0", "-p 0", "-c 3", "-lgc 1000,1200", "-rgc", "-lmc 2619", "-ac 2619,1980", "-rac", "-am 1",
    "-caa", "-mig 1", "-r",
)  # fmt: skip
NOT_ON_THIS_BOARD = ("--gom=0", "-gtt 80", "-c 0")


def occupied(version: str) -> State:
    """Three GPUs of board h100, the first with processes."""
    state = compile_state(load_board("h100"), Options(gpus=3, driver_version=version), {})
    first, *others = state.runtime.devices
    first = msgspec.structs.replace(first, processes=PROCESSES)
    return msgspec.structs.replace(state, runtime=Runtime((first, *others)))


class Smi:
    """One release of nvidia-smi on one image."""

    def __init__(self, release: str, program: Path, scene: Scene) -> None:
        self.release = release
        self._program = program
        scene.path.with_name("libnvidia-ml.so.1").symlink_to(LIBRARY)
        self._environ = {
            "LD_LIBRARY_PATH": str(scene.folder),
            "SIMNODE_IMAGE": str(scene.path),
            "PATH": os.environ["PATH"],
        }

    def run(self, arguments: str) -> subprocess.CompletedProcess[str]:
        """A view, however it ends."""
        words = [str(self._program), *arguments.split()]
        return subprocess.run(words, env=self._environ, capture_output=True, text=True, timeout=20, check=False)

    def __call__(self, arguments: str) -> str:
        """Standard output of a view that ends with 0."""
        done = self.run(arguments)
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stdout[-500:])
        return done.stdout


@pytest.fixture(params=sorted(RELEASES))
def smi(request: pytest.FixtureRequest, program: Obtain, library: Library, tmp_path: Path) -> Smi:
    """Each release, with the driver that it came with."""
    scene = Scene(library, tmp_path)
    scene.publish(occupied(RELEASES[request.param]))
    return Smi(request.param, program(request.param).path, scene)


WRONG_WORDS = re.compile("ERR!|Unknown Error|Insufficient Size|Function Not Found|Uninitialized|Invalid Argument")


def test_every_view_ends_well(smi: Smi) -> None:
    for view in VIEWS if smi.release == "nvidia-smi-535" else (*VIEWS, *SINCE_550):
        assert not WRONG_WORDS.search(smi(view)), view


def test_every_key_of_the_query_has_an_answer(smi: Smi) -> None:
    keys = re.findall(r'^"([a-z][^ "]*)"', smi("--help-query-gpu"), re.M)
    assert len(keys) > 130
    values = smi(f"--query-gpu={','.join(keys)} --format=csv,noheader -i 0").strip().split(", ")
    assert len(values) == len(keys)
    assert not WRONG_WORDS.search(" ".join(values))


def test_whoever_may_not_change_the_board_is_told_so(smi: Smi) -> None:
    for setting in DENIED:
        done = smi.run(f"-i 0 {setting}")
        assert done.returncode == 4, (setting, done.stdout)
    for setting in NOT_ON_THIS_BOARD:
        assert smi.run(f"-i 0 {setting}").returncode == 0, setting


@pytest.mark.parametrize("driver", ["470.256.02", "535.261.03", "550.163.01", "570.124.06", "580.105.08", "595.91.07"])
@pytest.mark.parametrize("release", sorted(RELEASES))
def test_any_release_meets_any_driver(
    program: Obtain, library: Library, tmp_path: Path, release: str, driver: str
) -> None:
    scene = Scene(library, tmp_path)
    scene.publish(occupied(driver))
    smi = Smi(release, program(release).path, scene)
    for view in ("-q", "-q -x", "topo -m", "nvlink -e", "dmon -c 1 -s pucvmet"):
        assert not WRONG_WORDS.search(smi(view)), view
    assert f"Driver Version: {driver}" in smi("")
    used = [row[1:6] for row in map(str.split, smi("pmon -c 1").splitlines()) if row[1] in ("4242", "4243", "4244")]
    assert used == [["4242", "C", "37", "12", "3"], ["4243", "G", "1", "2", "0"], ["4244", "C+G", "0", "0", "0"]]
    assert smi("--query-gpu=power.draw,temperature.gpu --format=csv,noheader -i 0") == "68.92 W, 29\n"


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
