"""Our nvidia-smi and the real ones show what the profile says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Node
from tests.consumers.expected import GPU, MIB, gpus

QUERY = "--query-gpu=index,name,uuid,pci.bus_id,memory.total,temperature.gpu,power.draw"
HEADER = "index, name, uuid, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W]"
REAL = ["nvidia-smi-535", "nvidia-smi-550"]
pytestmark = pytest.mark.consumer


@pytest.fixture(params=["ours", *REAL])
def smi(request: pytest.FixtureRequest, program: Obtain) -> str | Path:
    """An nvidia-smi: ours by its name, a real one by its path outside the node."""
    return "nvidia-smi" if request.param == "ours" else program(request.param).path


@pytest.fixture(params=REAL)
def real_smi(request: pytest.FixtureRequest, program: Obtain) -> Path:
    """A real nvidia-smi."""
    return program(request.param).path


def listing(expected: list[GPU]) -> str:
    """What `nvidia-smi -L` prints."""
    return "".join(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in expected)


def without_time(screen: str) -> str:
    """The default view less its first line, the time of day."""
    return screen.split("\n", 1)[1]


def test_lists_the_gpus(node: Node, smi: str | Path) -> None:
    """Name and UUID of each."""
    assert node.output(smi, "-L") == listing(gpus())


def test_an_empty_environment_suffices(namespaced: Node) -> None:
    """The standard places serve a program that knows nothing of the node."""
    assert namespaced.output("env", "-i", "/usr/bin/nvidia-smi", "-L") == listing(gpus())


def test_queries_the_values_of_the_profile(node: Node, real_smi: Path) -> None:
    """Identity, bus, memory, temperature and power, to the last digit."""
    lines = node.output(real_smi, QUERY, "--format=csv").splitlines()
    assert lines == [HEADER, *(gpu.csv() for gpu in gpus())]


def test_the_default_view_shows_every_gpu(node: Node, smi: str | Path) -> None:
    """Row, bus id, temperature, whole watts and memory, and no process."""
    screen = node.output(smi)
    for gpu in gpus():
        assert f"|   {gpu.index}  {gpu.name} " in screen
        assert gpu.bus_id in screen
    readings = re.findall(r"^\| N/A +(\d+)C .* (\d+)W / +\d+W \| +0MiB / +(\d+)MiB \|", screen, re.M)
    assert [tuple(map(int, row)) for row in readings] == [
        (gpu.temperature, gpu.power // 1000, gpu.memory_total // MIB) for gpu in gpus()
    ]
    assert "No running processes found" in screen


def test_ours_prints_what_the_real_one_prints(namespaced: Node, program: Obtain) -> None:
    """Byte for byte on an idle node, the time stamp aside."""
    real = program("nvidia-smi-550")
    options = ("--board", "h100", "--driver-version", real.version)
    assert without_time(namespaced.output("nvidia-smi", options=options)) == without_time(
        namespaced.output(real.path, options=options)
    )


def test_a_given_nvidia_smi_takes_the_place_of_ours(namespaced: Node, real_smi: Path) -> None:
    """`--nvidia-smi PATH` puts it at /usr/bin/nvidia-smi."""
    options = ("--board", "h100", "--nvidia-smi", str(real_smi))
    namespaced.output("cmp", "/usr/bin/nvidia-smi", real_smi, options=options)
    assert namespaced.output("env", "-i", "/usr/bin/nvidia-smi", "-L", options=options) == listing(gpus())


def test_an_override_is_shown(node: Node, real_smi: Path) -> None:
    """`--set` reaches the program."""
    overrides = ("thermal.temperature_gpu_c=91",)
    options = ("--board", "h100", "--set", overrides[0])
    lines = node.output(real_smi, QUERY, "--format=csv,noheader", options=options).splitlines()
    assert lines == [gpu.csv() for gpu in gpus(overrides=overrides)]


@pytest.mark.parametrize("count", [1, 16, 64])
def test_any_number_of_gpus(namespaced: Node, smi: str | Path, count: int) -> None:
    """Identities beyond the board's own eight are made up without collision."""
    expected = gpus(count=count)
    assert len({gpu.uuid for gpu in expected}) == len({gpu.bus_id for gpu in expected}) == count
    assert namespaced.output(smi, "-L", options=("--board", "h100", "--gpus", str(count))) == listing(expected)


def test_no_gpu_at_all(node: Node, smi: str | Path) -> None:
    """The text and the exit codes of the real program without devices."""
    options = ("--board", "h100", "--gpus", "0")
    listed = node.run(smi, "-L", options=options)
    assert (listed.returncode, listed.stdout) == (0, "No devices found.\n")
    shown = node.run(smi, options=options)
    assert (shown.returncode, shown.stdout) == (6, "No devices were found\n")
