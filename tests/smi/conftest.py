"""Our nvidia-smi and the real one, on the same image."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from simnode.nvml.cells import DEVICE, IMAGE, NODE
from simnode.nvml.image import Publisher
from simnode.state import State
from tests import sanitized
from tests.conftest import Obtain
from tests.smi.conditions import CONDITIONS
from tests.smi.nodes import encoded

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "simnode" / "_native"
OURS = NATIVE / "nvidia-smi"
LIBRARY = NATIVE / "libnvidia-ml.so"
WITHOUT_LEAKS = (("ASAN_OPTIONS", "detect_leaks=0"),)
"""To look for leaks takes as long as everything else; a test of its own does."""


@dataclass(frozen=True)
class Screen:
    """What a program left behind."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Smi:
    """An nvidia-smi. `libraries` is where it finds libnvidia-ml.so.1, if it has to; `more` is for its environment."""

    program: Path
    libraries: Path | None = None
    more: tuple[tuple[str, str], ...] = ()

    def run(self, *arguments: str, image: Path | None, zone: str = "UTC") -> Screen:
        """Its screen with this image (a folder, also the working one), in this time zone."""
        environ = {"TZ": zone, **dict(self.more)}
        if image is not None:
            environ["SIMNODE_IMAGE"] = str(image)
        if self.libraries is not None:
            environ["LD_LIBRARY_PATH"] = str(self.libraries)
        done = subprocess.run(
            [self.program, *arguments],
            env=environ,
            cwd=image if image is not None and image.is_dir() else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        return Screen(done.returncode, *(raw.decode(errors="surrogateescape") for raw in (done.stdout, done.stderr)))


@dataclass(frozen=True)
class Watched(Smi):
    """An nvidia-smi whose twin runs as well each time; that has to end as it did, and to complain of nothing else."""

    twin: Smi = field(kw_only=True)

    def run(self, *arguments: str, image: Path | None, zone: str = "UTC") -> Screen:
        """Its own screen."""
        watched = self.twin.run(*arguments, image=image, zone=zone)
        screen = super().run(*arguments, image=image, zone=zone)
        assert (watched.code, watched.errors) == (screen.code, screen.errors)
        return screen


class Images:
    """An image for each condition, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, condition: str) -> Path:
        """The folder of the condition's image."""
        folder = self._folder / condition
        if not folder.exists():
            folder.mkdir()
            publish(CONDITIONS[condition](), folder)
        return folder


def publish(block: bytes, folder: Path) -> None:
    """A new image in the folder, which holds what was encoded."""
    path = folder / "image.1"
    path.touch()
    os.truncate(path, IMAGE.size)
    with Publisher(path) as publisher:
        devices = range(NODE.size, len(block), DEVICE.size)
        publisher.publish((block[: NODE.size], *(block[at : at + DEVICE.size] for at in devices)))


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """The images of all conditions."""
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a loader finds our library."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "libnvidia-ml.so.1").symlink_to(LIBRARY)
    return folder


@pytest.fixture
def real(program: Obtain, libraries: Path) -> Smi:
    """The real nvidia-smi of the driver that the tests' nodes simulate."""
    return Smi(program("nvidia-smi-550").path, libraries)


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our nvidia-smi from the same sources, under the address and undefined behaviour sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    program = folder / "nvidia-smi"
    cc = shlex.split(os.environ.get("CC") or "cc")
    objects = sanitized.objects(("smi", "nvml"), folder)
    subprocess.run([*cc, *sanitized.FLAGS, *objects, "-o", program], check=True)
    return program


@pytest.fixture
def ours(twin: Path) -> Smi:
    """Our nvidia-smi as it is shipped, its twin under the sanitizers beside it."""
    assert OURS.exists(), "native/build.py makes it: make native"
    return Watched(OURS, twin=Smi(twin, more=WITHOUT_LEAKS))


@pytest.fixture
def publish_state(tmp_path: Path) -> Callable[[State], Path]:
    """Makes an image of a state; the folder."""

    def publish_one(state: State) -> Path:
        publish(encoded(state), tmp_path)
        return tmp_path

    return publish_one
