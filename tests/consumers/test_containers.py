"""Real container runtimes start containers by the names of our CDI specs, and inside is what was asked for."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.cri_api import Refused
from tests.consumers.runtimes import PYTHON, Containerd, Containers, Machine, Podman, lent, root_filesystem, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a container runtime of its own takes root")

Start = Callable[..., str]
UUID = "GPU-48313030-0000-0000-0000-00000000000{}"
LISTED = "GPU {}: NVIDIA H100 80GB HBM3 (UUID: {})\n"
RELEASE, OTHER_RELEASE = 'driver_version: "580.105.08"', 'driver_version: "550.163.01"'
CONTROL = {"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"}
MIG = """
mig:
  gpus:
    - index: 2
      mode: enabled
      gpu_instances:
        - {profile: 1g.10gb, count: 2}
"""
PYNVML = """
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    print(pynvml.nvmlDeviceGetMinorNumber(handle), pynvml.nvmlDeviceGetUUID(handle))
print(pynvml.nvmlSystemGetDriverVersion())
"""


@pytest.fixture(scope="module")
def machine(program: Obtain) -> Iterator[Machine]:
    """The machine, without an agent."""
    podman = program("podman")
    with tempfile.TemporaryDirectory(prefix="simnode-runtimes-") as scratch:
        made = Machine(Path(scratch), [path for path in map(Path, podman.libraries.split(":")) if path.is_dir()])
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module", params=["podman", "containerd"])
def runtime(request: pytest.FixtureRequest, machine: Machine, program: Obtain) -> Iterator[Containers]:
    """One of the runtimes."""
    root = root_filesystem(machine.scratch / f"image-{request.param}", program("busybox").path)
    made: Containers
    if request.param == "podman":
        made = Podman(machine, program("podman"), root)
    else:
        made = Containerd(machine, program("containerd"), program("podman"), root)
    yield made
    made.close()


@pytest.fixture
def idle(machine: Machine) -> None:
    """The machine with an agent that keeps 8 H100s, for a test that changes nothing: it stays for the next of them."""
    if machine.agent is None:
        machine.configure()
        machine.keep()


@pytest.fixture
def node(machine: Machine) -> Iterator[Machine]:
    """The machine with an agent of the test's own."""
    if machine.agent is not None:
        machine.end()
    machine.configure()
    machine.keep()
    yield machine
    if machine.agent is not None:
        machine.end()
    assert not machine.path("/run/cdi").exists()


@pytest.fixture
def start(runtime: Containers) -> Iterator[Start]:
    """Starts containers that end with the test."""
    started = []

    def begin(*devices: str, **options: list[str | Path]) -> str:
        started.append(runtime.start(*devices, **options))
        return started[-1]

    yield begin
    for container in started:
        runtime.remove(container)


def nodes(runtime: Containers, container: str) -> set[str]:
    """The NVIDIA devices of a container."""
    return {name for name in runtime.run(container, "ls", "/dev")[1].split() if name.startswith("nvidia")}


@pytest.mark.usefixtures("idle")
def test_a_container_has_the_gpus_that_were_asked_for(runtime: Containers, start: Start) -> None:
    for asked, minors in (
        (["nvidia.com/gpu=1"], [1]),
        ([f"nvidia.com/gpu={UUID.format(5)}"], [5]),
        (["nvidia.com/gpu=6", "nvidia.com/gpu=2"], [2, 6]),
        (["nvidia.com/gpu=all"], list(range(8))),
    ):
        container = start(*asked)
        assert nodes(runtime, container) == CONTROL | {f"nvidia{minor}" for minor in minors}
        listed = "".join(LISTED.format(at, UUID.format(minor)) for at, minor in enumerate(minors))
        assert runtime.run(container, "nvidia-smi", "-L") == (0, listed)


@pytest.mark.usefixtures("idle")
def test_what_no_spec_can_have_mounted_is_there(runtime: Containers, start: Start) -> None:
    container = start("nvidia.com/gpu=0")
    code, said = runtime.run(container, "cat", "/proc/driver/nvidia/version")
    assert (code, said.split()[:4]) == (0, ["NVRM", "version:", "NVIDIA", "UNIX"])
    addresses = set(runtime.run(container, "ls", "/proc/driver/nvidia/gpus")[1].split())
    assert len(addresses) == 8
    assert addresses < set(runtime.run(container, "ls", "/sys/bus/pci/devices")[1].split())
    first = f"/sys/bus/pci/devices/{min(addresses)}"
    assert runtime.run(container, "cat", f"{first}/vendor", f"{first}/class") == (0, "0x10de\n0x030200\n")
    assert "nvidia" in runtime.run(container, "ls", "/sys/module")[1].split()
    if Path("/proc/modules").exists():  # the kernel's own, which alone can be mounted over
        assert "\nnvidia " in "\n" + runtime.run(container, "cat", "/proc/modules")[1]
    assert runtime.run(container, "sh", "-c", "echo x > /proc/driver/nvidia/params")[0] != 0
    assert runtime.run(container, "sh", "-c", "echo x > /etc/simnode/config.yaml")[0] != 0


@pytest.mark.usefixtures("idle")
def test_real_programs_see_the_same(runtime: Containers, start: Start, program: Obtain) -> None:
    smi, binding, lspci = program("nvidia-smi-550"), program("nvidia-ml-py-550"), program("lspci")
    lent_too = [smi.root, binding.root, lspci.root]
    container = start("nvidia.com/gpu=3", "nvidia.com/gpu=4", mounts=[*lent(), *lent_too])
    listed = LISTED.format(0, UUID.format(3)) + LISTED.format(1, UUID.format(4))
    assert runtime.run(container, smi.path, "-L") == (0, listed)
    query = ("--query-gpu=index,memory.total", "--format=csv,noheader")
    assert runtime.run(container, smi.path, *query) == (0, "0, 81559 MiB\n1, 81559 MiB\n")
    script = f"import sys; sys.path.insert(0, {str(binding.root)!r})" + PYNVML
    code, said = runtime.run(container, PYTHON, "-c", script)
    assert (code, said.splitlines()[:2]) == (0, [f"3 {UUID.format(3)}", f"4 {UUID.format(4)}"])
    libraries = f"LD_LIBRARY_PATH={lspci.libraries}"
    code, said = runtime.run(container, "env", libraries, lspci.path, "-n", "-d", "10de::0302")
    assert (code, [line.split()[1:3] for line in said.splitlines()]) == (0, [["0302:", "10de:2330"]] * 8)


@pytest.mark.usefixtures("idle")
def test_what_the_node_does_not_have_is_refused(runtime: Containers) -> None:
    with pytest.raises(Refused):
        runtime.start("nvidia.com/gpu=8")


@pytest.mark.usefixtures("idle")
def test_the_injectors_devices_come_without_a_driver(runtime: Containers, start: Start) -> None:
    container = start("simnode.internal/gpu=all")
    assert nodes(runtime, container) == CONTROL | {f"nvidia{minor}" for minor in range(8)}
    environ = runtime.run(container, "cat", "/proc/1/environ")[1].split("\0") + runtime.run(container, "env")[1].split()
    assert "SIMNODE_DEVICE_SOURCE=cdi" in environ
    assert runtime.run(container, "test", "-e", "/usr/bin/nvidia-smi")[0] != 0


def test_a_container_lives_through_profiles_and_agents(node: Machine, runtime: Containers, start: Start) -> None:
    container = start("nvidia.com/gpu=1", "nvidia.com/gpu=6")
    both = LISTED.format(0, UUID.format(1)) + LISTED.format(1, UUID.format(6))

    def shows(text: str) -> None:
        until(lambda: runtime.run(container, "nvidia-smi", "-L") == (0, text))

    node.configure(("num_devices: 8", "num_devices: 4"))
    shows(LISTED.format(0, UUID.format(1)))
    assert "4" not in node.devices()
    node.configure()
    shows(both)
    node.configure((RELEASE, OTHER_RELEASE))
    until(lambda: "550.163.01" in runtime.run(container, "cat", "/proc/driver/nvidia/version")[1])
    shows(both)
    node.end(signal.SIGKILL)
    shows(both)
    node.configure()
    node.keep()
    shows(both)
    node.end()
    node.keep()
    shows(both)
    until(lambda: "580.105.08" in runtime.run(container, "cat", "/proc/driver/nvidia/version")[1])
    shows(both)


def test_a_watcher_never_misses_what_a_spec_names(node: Machine) -> None:
    """8, 4, 0 and 8 GPUs and another release, with somebody who looks all the time."""
    misses: list[str] = []
    looks = 0
    for edits in (
        [("num_devices: 8", "num_devices: 4")],
        [("num_devices: 8", "num_devices: 0")],
        [],
        [("580.105", "550.163")],
    ):
        node.configure(*edits)
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            looks += 1
            misses += node.missing()
    assert looks > 100
    assert misses == []


def test_a_mig_device_comes_with_its_capabilities_alone(node: Machine, runtime: Containers, start: Start) -> None:
    with node.config.open("a") as profile:
        profile.write(MIG)
    until(lambda: any(name.startswith("MIG-") for name in node.devices()))
    uuids = [name for name in node.devices() if name.startswith("MIG-")]
    assert [name for name in node.devices() if ":" in name] == ["2:0", "2:1"]
    container = start(f"nvidia.com/gpu={uuids[1]}")
    assert nodes(runtime, container) == CONTROL | {"nvidia2", "nvidia-caps"}
    assert len(runtime.run(container, "ls", "/dev/nvidia-caps")[1].split()) == 2
    listed = runtime.run(container, "nvidia-smi", "-L")[1]
    assert uuids[1] in listed
    assert listed.count("MIG-") == 1


def test_the_published_driver_can_be_a_root_directory(node: Machine) -> None:
    listed = "".join(LISTED.format(index, UUID.format(index)) for index in range(8))
    until(lambda: node.run("chroot", "/run/nvidia/driver", "nvidia-smi", "-L").stdout == listed)
