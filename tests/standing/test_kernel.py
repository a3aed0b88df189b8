"""The kernel as a standing node shows it, as root and to an ordinary user: modules, device majors, IMEX, its log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.sandbox.running import Runner
from tests.standing.standing import refuse, standing, succeed

MODULES = {"nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"}
WAITING = """
import ctypes, sys
nvml, version = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(80)
count = ctypes.c_uint()
assert nvml.nvmlInit_v2() == 0
print("in", flush=True)
sys.stdin.readline()
print(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), nvml.nvmlShutdown(), nvml.nvmlInit_v2())
"""


LIBRARY = "ls /lib*/libnvidia-ml.so.1 /lib/*/libnvidia-ml.so.1 2>/dev/null | head -n1"
LOG = f"cat $(dirname $({LIBRARY}))/simnode/log/kernel.log"


@pytest.fixture(scope="module")
def shared(sharing: Runner) -> Iterator[Runner]:
    """A node stands."""
    with standing(sharing, "--board", "t4", "--driver-version", "550.163.01") as node:
        yield node


@pytest.fixture
def node(shared: Runner) -> Runner:
    """It stands as it was brought up."""
    succeed(shared, "reset")
    return shared


def lines(nodes: Runner, *words: str) -> list[str]:
    """What a command in the node prints."""
    return succeed(nodes, "exec", "--", *words).splitlines()


def test_modules_are_the_machines_and_the_drivers_also_after_an_upgrade(node: Runner) -> None:
    own = {path.name for path in Path("/sys/module").iterdir()}
    assert set(lines(node, "ls", "/sys/module")) == own | MODULES
    assert lines(node, "ls", "/sys/module/kernel") == sorted(path.name for path in Path("/sys/module/kernel").iterdir())
    versions = ("sh", "-c", "cat /sys/module/nvidia*/version; head -n1 /proc/driver/nvidia/version | cut -d' ' -f11")
    assert lines(node, *versions) == ["550.163.01"] * 5
    succeed(node, "set", "system.driver_version=580.65.06")
    assert lines(node, *versions) == ["580.65.06"] * 5
    assert lines(node, "ls", "/sys/module/nvidia/drivers/pci:nvidia/module/holders") == [
        "nvidia_modeset",
        "nvidia_uvm",
    ]


def test_texts_of_procfs_are_the_machines_and_the_drivers(node: Runner) -> None:
    for name, ours in (("devices", "195 nvidiactl"), ("modules", "nvidia_drm")):
        own = Path("/proc") / name
        told = lines(node, "sh", "-c", f"cat /proc/{name} 2>/dev/null || true")
        assert set(own.read_text().splitlines() if own.exists() else []) <= set(told)
        assert any(line.startswith(ours) for line in told) == own.exists()


def test_imex_comes_and_goes_without_a_trace(nodes: Runner) -> None:
    look = ("sh", "-c", "ls /dev /proc/driver /proc/driver/nvidia; grep nvidia /proc/devices")
    succeed(nodes, "up", "--board", "gb200", "--gpus", "2")
    before = lines(nodes, *look)
    succeed(nodes, "set", "imex.enabled=true", "imex.imex_major=501")
    kinds = lines(nodes, "sh", "-c", "stat -c %F /dev/nvidia-caps-imex-channels/* /dev/nvidia-caps/nvidia-cap4323")
    assert kinds == ["character special file"] * 2049
    assert lines(nodes, "cat", "/proc/driver/nvidia/capabilities/fabric-imex-mgmt")[0] == "DeviceFileMinor: 4323"
    assert [line for line in lines(nodes, *look) if "imex" in line] == [
        "nvidia-caps-imex-channels",
        "501 nvidia-caps-imex-channels",
    ]
    succeed(nodes, "set", "imex.channels=3")
    assert lines(nodes, "ls", "/dev/nvidia-caps-imex-channels") == ["channel0", "channel1", "channel2"]
    succeed(nodes, "set", "imex.enabled=false")
    assert lines(nodes, *look) == before


def test_a_major_that_the_machine_has_given_away_is_refused(node: Runner) -> None:
    assert refuse(node, 1, "set", "imex.enabled=true", "imex.imex_major=10") == (
        "stored, but not published yet: imex: stage: imex.imex_major: 10 is the major of misc on this machine; "
        "give one that is free"
    )


def test_who_is_in_when_versions_part_stays_in(node: Runner) -> None:
    """As a process of a real machine, whose kernel module does not change under it."""
    command = f"{sys.executable} -c '{WAITING}'"
    process = node.start(
        "exec", "--", "sh", "-c", f"(while ! test -e {node.scratch}/go; do sleep 0.05; done) | {command}"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    succeed(node, "fault", "inject", "version-skew")
    (node.scratch / "go").touch()
    assert process.communicate(timeout=20) == ("0 0 18\n", "")


@pytest.mark.consumer
@pytest.mark.parametrize(
    ("name", "release"),
    [("nvidia-smi-535", "535.261.03"), ("nvidia-smi-550", "550.163.01"), ("nvidia-smi-555", "555.58.02")],
    ids=["535", "550", "555"],
)
def test_nvidia_smi_says_that_versions_part(node: Runner, program: Obtain, name: str, release: str) -> None:
    """The real one and ours, in the same words and with the same exit code."""
    real = str(program(name).path)
    succeed(node, "set", f"system.driver_version={release}")
    succeed(node, "fault", "inject", "version-skew", "--kernel-version", "560.28.03")
    library = ".".join(release.split(".")[:2])
    said = f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library}"
    for words in ((real,), (real, "-L"), ("nvidia-smi",), ("nvidia-smi", "-q")):
        done = node.run("exec", "--", *words)
        assert (done.returncode, done.stdout.strip()) == (18, said), words


def test_an_xid_is_in_the_nodes_kernel_log(node: Runner) -> None:
    before = lines(node, "sh", "-c", LOG)
    succeed(node, "fault", "inject", "--gpu", "1", "fallen_off_bus")
    told = lines(node, "sh", "-c", LOG)
    assert told[: len(before)] == before
    assert [line.partition("] ")[2] for line in told[len(before) :]][2:4] == [
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    ]
