"""nvmlInit, nvmlShutdown, and where the image is looked for."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simnode.nvml.cells import HEADER, IMAGE
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    DRIVER_NOT_LOADED,
    LIBRARY,
    OTHER_FORMAT,
    SUCCESS,
    UNINITIALIZED,
    Library,
    Scene,
)

INITS: list[tuple[str, tuple[int, ...]]] = [("nvmlInit", ()), ("nvmlInit_v2", ()), ("nvmlInitWithFlags", (1,))]


def test_shutdown_ends_one_init(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    for name, arguments in INITS:
        library.call(name, *arguments)
    for _ in INITS:
        library.call("nvmlShutdown")
    assert library.number("nvmlDeviceGetCount_v2") == 1
    library.call("nvmlShutdown")
    assert library.code("nvmlDeviceGetCount_v2", ctypes.byref(ctypes.c_uint())) == UNINITIALIZED
    assert library.code("nvmlShutdown") == UNINITIALIZED


def test_versions_answer_before_init(scene: Scene) -> None:
    scene.publish(node(runtime()))
    library = scene.library
    assert library.text("nvmlSystemGetDriverVersion", length=80) == "580.105.08"
    assert library.text("nvmlSystemGetNVMLVersion", length=80) == "13.580.105.08"
    assert library.number("nvmlSystemGetCudaDriverVersion_v2") == 13000
    assert library.number("nvmlSystemGetCudaDriverVersion") == 13000


def test_a_later_init_sees_the_devices_of_that_time(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    scene.publish(node(runtime(), runtime()))
    assert library.number("nvmlDeviceGetCount_v2") == 1
    library.call("nvmlShutdown")
    library.call("nvmlInit_v2")
    assert library.number("nvmlDeviceGetCount_v2") == 2


def test_a_later_init_finds_another_image(scene: Scene, library: Library, tmp_path: Path) -> None:
    scene.start(node(runtime()))
    library.call("nvmlShutdown")
    (tmp_path / "other").mkdir()
    other = Scene(library, tmp_path / "other")
    other.publish(node(runtime(), runtime(), runtime()))
    other.path.replace(scene.path)
    library.call("nvmlInit_v2")
    assert library.number("nvmlDeviceGetCount_v2") == 3


def test_init_again_and_again_maps_the_image_once(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    for _ in range(50):
        library.call("nvmlShutdown")
        library.call("nvmlInit_v2")
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(scene.path) in line]
    assert len([line for line in mapped if " r--s " in line]) == 1


def _patched(name: str, form: str, value: object) -> Callable[[Path], None]:
    def patch(path: Path) -> None:
        content = bytearray(path.read_bytes())
        struct.pack_into(form, content, HEADER.offsets[name], value)
        path.write_bytes(content)

    return patch


def _truncated(size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, size)


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(_instead(lambda path: path.name), DRIVER_NOT_LOADED, id="absent"),
        pytest.param(_instead(lambda path: path.touch()), DRIVER_NOT_LOADED, id="empty"),
        pytest.param(_instead(lambda path: path.mkdir()), DRIVER_NOT_LOADED, id="directory"),
        pytest.param(_instead(os.mkfifo), DRIVER_NOT_LOADED, id="fifo"),
        pytest.param(_instead(lambda path: path.symlink_to("/dev/zero")), DRIVER_NOT_LOADED, id="device"),
        pytest.param(_instead(lambda path: path.symlink_to(path)), DRIVER_NOT_LOADED, id="loop"),
        pytest.param(_truncated(HEADER.size - 1), DRIVER_NOT_LOADED, id="half a header"),
        pytest.param(_truncated(IMAGE.size - 1), DRIVER_NOT_LOADED, id="a byte short"),
        pytest.param(_patched("magic", "<Q", 0), DRIVER_NOT_LOADED, id="no magic"),
        pytest.param(_patched("done", "<Q", 0), DRIVER_NOT_LOADED, id="never published"),
        pytest.param(_patched("format", "<I", 2), OTHER_FORMAT, id="other format"),
        pytest.param(_patched("slot_bytes", "<Q", 1), OTHER_FORMAT, id="other slot"),
        pytest.param(_patched("image_bytes", "<Q", 1 << 62), OTHER_FORMAT, id="other size"),
    ],
)
def test_no_image_or_a_bad_one_is_refused(scene: Scene, spoil: Callable[[Path], None], code: int) -> None:
    scene.publish(node(runtime()))
    spoil(scene.path)
    assert scene.library.code("nvmlInit_v2") == code
    assert scene.library.code("nvmlSystemGetDriverVersion", ctypes.create_string_buffer(80), 80) == code
    assert scene.library.code("nvmlShutdown") == UNINITIALIZED


def test_every_single_byte_of_the_header_may_be_wrong(scene: Scene) -> None:
    """Whatever the header says, init answers one of its codes and never faults."""
    scene.publish(node(runtime()))
    good = scene.path.read_bytes()[: HEADER.size]
    with scene.path.open("r+b", buffering=0) as file:
        for at in range(HEADER.size):
            for value in (0, 0x7F, 0xFF):
                os.pwrite(file.fileno(), bytes([*good[:at], value, *good[at + 1 :]]), 0)
                assert scene.library.code("nvmlInit_v2") in (SUCCESS, DRIVER_NOT_LOADED, OTHER_FORMAT)
                scene.library.stop()


COUNT = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
code = library.nvmlInit_v2()
count = ctypes.c_uint(99)
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
print(code, count.value)
"""


def _count(library: Path, environ: dict[str, str] | None = None, directory: Path | None = None) -> list[int]:
    words = [sys.executable, "-c", COUNT, str(library)]
    environ = {"PATH": os.environ["PATH"], **(environ or {})}
    done = subprocess.run(words, env=environ, cwd=directory, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


SHUTDOWN = """
import ctypes, resource, sys
library = ctypes.CDLL(sys.argv[1])
library.nvmlInit_v2()
library.nvmlShutdown.argtypes = []
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
library.nvmlShutdown()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_shutdown_brings_no_memory_into_being_that_nobody_used(scene: Scene) -> None:
    """It looks at which event sets and samples callers have, never at the hundreds that they do not have."""
    scene.publish(node(runtime()))
    words = [sys.executable, "-c", SHUTDOWN, str(LIBRARY)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20  # pages


@pytest.fixture
def tree(tmp_path: Path, library: Library) -> Path:
    """A driver root: its library, and an image of three GPUs in its config directory."""
    for name in ("usr/lib64", "config", "lib"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(LIBRARY, tmp_path / "usr" / "lib64" / "libnvidia-ml.so.550")
    Scene(library, tmp_path / "config").publish(node(runtime(), runtime(), runtime()))
    (tmp_path / "lib" / "libnvidia-ml.so.1").symlink_to("../usr/lib64/libnvidia-ml.so.550")
    return tmp_path


def _aside(library: Library, folder: Path, gpus: int) -> Path:
    folder.mkdir()
    scene = Scene(library, folder)
    scene.publish(node(*[runtime()] * gpus))
    return scene.path


def test_the_resolved_library_finds_the_image_of_its_driver_root(tree: Path) -> None:
    assert _count(tree / "lib" / "libnvidia-ml.so.1") == [SUCCESS, 3]


def test_beside_the_library_as_loaded_comes_before_its_driver_root(tree: Path, library: Library) -> None:
    _aside(library, tree / "lib" / "simnode", 2)
    assert _count(tree / "lib" / "libnvidia-ml.so.1") == [SUCCESS, 2]


def test_a_library_loaded_by_a_relative_name_finds_its_image(tree: Path) -> None:
    assert _count(Path("./lib/libnvidia-ml.so.1"), directory=tree) == [SUCCESS, 3]


@pytest.mark.parametrize("name", ["", "image.1"], ids=["directory", "file"])
def test_the_environment_comes_first(tree: Path, library: Library, name: str) -> None:
    image = _aside(library, tree / "own", 1)
    assert _count(tree / "lib" / "libnvidia-ml.so.1", {"SIMNODE_IMAGE": str(image.parent / name)}) == [SUCCESS, 1]


def test_what_the_environment_names_and_is_not_there_is_not_replaced(tree: Path) -> None:
    environ = {"SIMNODE_IMAGE": str(tree / "nowhere")}
    assert _count(tree / "lib" / "libnvidia-ml.so.1", environ) == [DRIVER_NOT_LOADED, 99]


def test_an_empty_variable_is_none(tree: Path) -> None:
    assert _count(tree / "lib" / "libnvidia-ml.so.1", {"SIMNODE_IMAGE": ""}) == [SUCCESS, 3]
