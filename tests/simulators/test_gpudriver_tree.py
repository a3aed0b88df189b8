"""What the GPU driver's simulator wants to be there, for which State."""

from __future__ import annotations

import msgspec
import pytest

from simnode.host import CharacterDevice, Directory, File, Host, Link, LiveFile, StandIn, Tree, TreeError
from simnode.nvml.cells import IMAGE
from simnode.simulators import Devices
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.state import State
from tests.simulators.states import FACTS, state

FILES = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi")


def tree(state: State, devices: Devices = "node") -> Tree:
    """The tree of `state`; the engine is not asked, its root does not exist."""
    return GPUDriver(Host("/nonexistent", boot_id="1"), FILES, devices).tree(state, FACTS)


@pytest.mark.parametrize("gpus", [0, 1, 8, 64])
def test_every_gpu_has_a_node_and_an_information_file(gpus: int) -> None:
    wanted = tree(state(gpus))
    minors = {63 - index for index in range(gpus)}
    nodes = {surface.path: surface for surface in wanted if isinstance(surface, CharacterDevice)}
    assert {path for path in nodes if path.removeprefix("driver/dev/nvidia").isdecimal()} == {
        f"driver/dev/nvidia{minor}" for minor in minors
    }
    for minor in minors:
        assert nodes[f"driver/dev/nvidia{minor}"] == CharacterDevice(f"driver/dev/nvidia{minor}", 195, minor, 0o666)
    assert {path for path in wanted.paths if path.endswith("/information")} == {
        f"driver/proc/driver/nvidia/gpus/0000:{index + 7:02x}:00.0/information" for index in range(gpus)
    }


def test_a_driver_with_libcuda_has_it_beside_the_other_library() -> None:
    """By the driver's release, by its SONAME, and by the name that linkers use."""
    files = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi", cuda=b"cuda")
    wanted = GPUDriver(Host("/nonexistent", boot_id="1"), files, "node").tree(state(0), FACTS)
    assert set(wanted.paths) - set(tree(state(0)).paths) == {
        "driver/usr/lib64/libcuda.so",
        "driver/usr/lib64/libcuda.so.1",
        "driver/usr/lib64/libcuda.so.550.163.01",
    }
    for surface in (
        File("driver/usr/lib64/libcuda.so.550.163.01", b"cuda", 0o755),
        Link("driver/usr/lib64/libcuda.so.1", "libcuda.so.550.163.01"),
        Link("driver/usr/lib64/libcuda.so", "libcuda.so.1"),
    ):
        assert wanted.get(surface.path) == surface


def test_the_fixed_surfaces_are_a_drivers() -> None:
    wanted = tree(state(0))
    assert tuple(path for path in wanted.paths if path.startswith("driver/")) == (
        "driver/config",
        "driver/config/config.yaml",
        "driver/config/image.1",
        "driver/dev/nvidia-modeset",
        "driver/dev/nvidia-uvm",
        "driver/dev/nvidia-uvm-tools",
        "driver/dev/nvidiactl",
        "driver/proc/driver/nvidia",
        "driver/proc/driver/nvidia/gpus",
        "driver/proc/driver/nvidia/params",
        "driver/proc/driver/nvidia/version",
        "driver/usr/bin/nvidia-smi",
        "driver/usr/lib64/libnvidia-ml.so",
        "driver/usr/lib64/libnvidia-ml.so.1",
        "driver/usr/lib64/libnvidia-ml.so.550.163.01",
    )
    for surface in (
        CharacterDevice("driver/dev/nvidiactl", 195, 255, 0o666),
        CharacterDevice("driver/dev/nvidia-modeset", 195, 254, 0o666),
        CharacterDevice("driver/dev/nvidia-uvm", 510, 0, 0o666),
        CharacterDevice("driver/dev/nvidia-uvm-tools", 510, 1, 0o666),
        Directory("driver/config"),
        LiveFile("driver/config/image.1", IMAGE.size),
        Directory("driver/proc/driver/nvidia"),
        File("driver/usr/bin/nvidia-smi", b"nvidia-smi", 0o755),
        File("driver/usr/lib64/libnvidia-ml.so.550.163.01", b"library", 0o755),
        Link("driver/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.550.163.01"),
        Link("driver/usr/lib64/libnvidia-ml.so", "libnvidia-ml.so.1"),
    ):
        assert wanted.get(surface.path) == surface


def test_stand_ins_take_the_place_of_nodes() -> None:
    nodes, stand_ins = tree(state(8)), tree(state(8), "stand-in")
    assert nodes.paths == stand_ins.paths
    kinds = {type(surface) for surface in stand_ins if surface.path.startswith("driver/dev/")}
    assert kinds == {StandIn}


def test_without_devices_nothing_is_below_dev() -> None:
    assert not [path for path in tree(state(8), "none").paths if path.startswith("driver/dev")]


def test_the_mig_table_lies_beside_the_profile_if_there_is_one() -> None:
    assert "driver/config/mig-profiles.yaml" not in tree(state(1))
    table = msgspec.structs.replace(state(1), mig_profiles_raw=b"profiles: []\n")
    assert tree(table).get("driver/config/mig-profiles.yaml") == File(
        "driver/config/mig-profiles.yaml", b"profiles: []\n"
    )


@pytest.mark.parametrize("version", ["../../x", "a/b", "", "/", "..", "550\n"], ids=repr)
def test_a_driver_version_that_is_no_component_is_refused(version: str) -> None:
    with pytest.raises(TreeError):
        tree(state(1, version))


@pytest.mark.parametrize("address", ["../../x", "a/b", "", ".."], ids=repr)
def test_a_pci_address_that_is_no_component_is_refused(address: str) -> None:
    node = state(1)
    gpu = msgspec.structs.replace(node.devices[0], pci_bus_id=address)
    with pytest.raises(TreeError):
        tree(msgspec.structs.replace(node, devices=(gpu,)))
