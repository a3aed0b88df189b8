"""The GPU driver staged into a real directory: what is there after each State, and what the image says."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from simnode.host import ConvergeError, Host
from simnode.nvml.cells import IMAGE, NODE, SLOT
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.state import State
from tests.simulators.states import FACTS, state

FILES = DriverFiles(library=b"\x7fELF library", nvidia_smi=b"\x7fELF nvidia-smi")


@pytest.fixture
def driver(tmp_path: Path) -> GPUDriver:
    """A simulator over an empty root, without device nodes."""
    return GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "none")


def stage(driver: GPUDriver, *states: State) -> None:
    for each in states:
        asyncio.run(driver.stage(each, FACTS))


def published(root: Path) -> tuple[int, int, str]:
    """The number of the last whole publish, and that slot's count of devices and driver version."""
    image = (root / "driver/config/image.1").read_bytes()
    done = int.from_bytes(image[IMAGE.records["header"].offsets["done"] :][:8], "little")
    node = image[IMAGE.offsets["slot"] + (done & 1) * SLOT.size + SLOT.offsets["node"] :][: NODE.size]
    count = int.from_bytes(node[NODE.offsets["device_count"] :][:4], "little")
    return done, count, node[NODE.offsets["driver_version"] :].split(b"\0")[0].decode()


def found(root: Path) -> set[str]:
    """Everything in the root but the engine's own records."""
    return {str(path.relative_to(root)) for path in root.rglob("*")} - {
        str(path.relative_to(root)) for path in (root / "state", *(root / "state").rglob("*"))
    }


@pytest.mark.parametrize("gpus", [0, 1, 8, 64])
def test_everything_wanted_is_there_with_its_mode(driver: GPUDriver, tmp_path: Path, gpus: int) -> None:
    stage(driver, state(gpus))
    for surface in driver.tree(state(gpus), FACTS):
        mode = (tmp_path / surface.path).lstat().st_mode
        assert stat.S_IMODE(mode) == surface.mode, surface.path
    assert published(tmp_path)[1:] == (gpus, "550.163.01")
    assert f"  num_devices: {gpus}\n" in (tmp_path / "driver/config/config.yaml").read_text()


def test_the_library_is_found_by_all_its_names(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(1))
    for name in ("libnvidia-ml.so", "libnvidia-ml.so.1", "libnvidia-ml.so.550.163.01"):
        path = tmp_path / "driver/usr/lib64" / name
        assert path.read_bytes() == FILES.library
        assert (path.resolve().parent / "../../config/image.1").resolve().is_file()


@pytest.mark.parametrize(
    ("before", "after"),
    [(state(8), state(8, "535.129.03")), (state(8), state(1)), (state(1), state(8)), (state(8), state(0))],
    ids=["another driver", "fewer GPUs", "more GPUs", "no GPU"],
)
def test_nothing_of_the_state_before_is_left(tmp_path: Path, before: State, after: State) -> None:
    (tmp_path / "changed").mkdir()
    (tmp_path / "fresh").mkdir()
    changed, fresh = (GPUDriver(Host(tmp_path / name, boot_id="boot"), FILES, "none") for name in ("changed", "fresh"))
    stage(changed, before, after)
    stage(fresh, after)
    assert found(tmp_path / "changed") == found(tmp_path / "fresh")
    for path in found(tmp_path / "fresh") - {"driver/config/image.1"}:
        if (tmp_path / "fresh" / path).is_file():
            assert (tmp_path / "changed" / path).read_bytes() == (tmp_path / "fresh" / path).read_bytes(), path
    assert published(tmp_path / "changed")[1:] == published(tmp_path / "fresh")[1:]


def test_discarding_leaves_nothing(driver: GPUDriver, tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/foreign").write_text("not ours")
    stage(driver, state(8))
    asyncio.run(driver.discard())
    asyncio.run(driver.discard())
    assert found(tmp_path) == {"driver", "driver/foreign"}


def test_a_patch_changes_the_image_and_nothing_else(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(2))
    before = {path: os.lstat(tmp_path / path).st_ctime_ns for path in found(tmp_path)}
    number = published(tmp_path)[0]
    asyncio.run(driver.patch(state(2), FACTS))
    assert published(tmp_path) == (number + 1, 2, "550.163.01")
    after = {path: os.lstat(tmp_path / path).st_ctime_ns for path in found(tmp_path)}
    assert before.keys() == after.keys()
    assert {path for path in before if before[path] != after[path]} <= {"driver/config/image.1"}


def test_an_image_that_was_deleted_is_made_and_published_again(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(2))
    (tmp_path / "driver/config/image.1").unlink()
    stage(driver, state(2))
    assert published(tmp_path) == (1, 2, "550.163.01")


def test_a_restarted_simulator_goes_on_with_the_image_it_finds(driver: GPUDriver, tmp_path: Path) -> None:
    stage(driver, state(2))
    inode = (tmp_path / "driver/config/image.1").stat().st_ino
    number = published(tmp_path)[0]
    again = GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "none")
    stage(again, state(3))
    assert (tmp_path / "driver/config/image.1").stat().st_ino == inode
    assert published(tmp_path) == (number + 1, 3, "550.163.01")


def test_it_is_ready_while_staged(driver: GPUDriver, tmp_path: Path) -> None:
    assert not driver.ready()
    stage(driver, state(1))
    assert driver.ready()
    version = tmp_path / "driver/proc/driver/nvidia/version"
    version.unlink()
    version.mkdir()
    (version / "foreign").touch()
    with pytest.raises(ConvergeError):
        stage(driver, state(1))
    assert not driver.ready()
    (version / "foreign").unlink()
    stage(driver, state(1))
    assert driver.ready()
    asyncio.run(driver.discard())
    assert not driver.ready()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes need CAP_MKNOD")
def test_device_nodes_have_their_numbers_and_may_be_used_by_all(tmp_path: Path) -> None:
    driver = GPUDriver(Host(tmp_path, boot_id="boot"), FILES, "node")
    stage(driver, state(8))
    for name, major, minor in (("nvidia63", 195, 63), ("nvidia56", 195, 56), ("nvidiactl", 195, 255)):
        there = (tmp_path / "driver/dev" / name).stat()
        assert (stat.S_IFMT(there.st_mode), stat.S_IMODE(there.st_mode)) == (stat.S_IFCHR, 0o666)
        assert (os.major(there.st_rdev), os.minor(there.st_rdev)) == (major, minor)
    stage(driver, state(2))
    assert {path.name for path in (tmp_path / "driver/dev").iterdir()} == {
        "nvidia62",
        "nvidia63",
        "nvidia-modeset",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        "nvidiactl",
    }
    asyncio.run(driver.discard())
    assert found(tmp_path) == set()
