"""The driver that nvidia-smi finds, or does not: the image, its places, and a node that has nothing but the program."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simnode.nvml.cells import HEADER, IMAGE
from tests.smi.conditions import CONDITIONS
from tests.smi.conftest import OURS, Images, Smi, publish
from tests.users import as_user

CLONE_NEWUSER = 0x10000000
VIEWS: dict[str, tuple[str, ...]] = {
    "table": (),
    "list": ("-L",),
    "versions": ("--version",),
    "csv": ("--query-gpu=index,uuid,power.draw,ecc.mode.current", "--format=csv"),
    "topology": ("topo", "-m"),
    "links": ("nvlink", "-s"),
}


def _write(path: Path, header: bytes, size: int = IMAGE.size) -> None:
    path.write_bytes(header)
    os.truncate(path, size)


def broken(kind: str, folder: Path) -> Path:
    """An image folder in which there is something else."""
    path = folder / "image.1"
    publish(CONDITIONS["gpus-1"](), folder)
    header = bytearray(path.read_bytes()[: IMAGE.offsets["slot"]])
    match kind:
        case "none":
            path.unlink()
        case "empty":
            _write(path, b"", 0)
        case "text":
            path.write_text("not an image\n" * 1000)
        case "directory":
            path.unlink()
            path.mkdir()
        case "never-published":
            _write(path, bytes(IMAGE.size), IMAGE.size)
        case "other-format":
            struct.pack_into("<I", header, HEADER.offsets["format"], 77)
            _write(path, bytes(header))
        case "other-size":
            struct.pack_into("<Q", header, HEADER.offsets["slot_bytes"], 4096)
            _write(path, bytes(header))
        case "truncated":
            os.truncate(path, IMAGE.size // 2)
    return folder


KINDS = ["none", "empty", "text", "directory", "never-published", "other-format", "other-size", "truncated"]


@pytest.mark.parametrize("arguments", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_driver_it_says_what_the_real_one_says(
    kind: str, arguments: tuple[str, ...], tmp_path: Path, real: Smi, ours: Smi
) -> None:
    """No image is a driver that is not loaded, an image of another format is a library of another release."""
    folder = broken(kind, tmp_path)
    assert ours.run(*arguments, image=folder) == real.run(*arguments, image=folder)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "XXX-3:30", "no/where"])
def test_the_clock_is_local(zone: str, images: Images, real: Smi, ours: Smi) -> None:
    """The first line is the time of day where the user is, as the real one writes it."""

    def clock(smi: Smi) -> time.struct_time:
        line = smi.run(image=images("gpus-1"), zone=zone).output.split("\n", 1)[0]
        assert line.endswith(" " * 7)
        return time.strptime(line.rstrip(), "%a %b %d %H:%M:%S %Y")

    before, now, after = clock(real), clock(ours), clock(real)
    assert before <= now <= after


def test_the_image_is_found_beside_the_driver_root(tmp_path: Path, images: Images) -> None:
    """../../config of the program, however it was called."""
    (tmp_path / "driver/usr/bin").mkdir(parents=True)
    program = shutil.copy2(OURS, tmp_path / "driver/usr/bin/nvidia-smi")
    shutil.copytree(images("gpus-8"), tmp_path / "driver/config")
    (tmp_path / "smi").symlink_to(program)
    assert Smi(tmp_path / "smi").run("-L", image=None) == Smi(OURS).run("-L", image=images("gpus-8"))


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty folder that everybody can reach; those of pytest are closed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _enter(root: Path) -> None:
    """Makes `root` the only files there are; a user who may not gets a user namespace for it."""
    try:
        os.chroot(root)
    except PermissionError:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
            os._exit(77)
        os.chroot(root)
    os.chdir("/")


@pytest.mark.parametrize("place", ["etc/simnode", "usr/lib64/simnode"])
@pytest.mark.parametrize("arguments", VIEWS.values(), ids=VIEWS.keys())
def test_it_runs_where_there_is_nothing_else(
    place: str, arguments: tuple[str, ...], uid: int, root: Path, images: Images
) -> None:
    """No libc, no loader, no /proc, no time zones: a program and an image."""
    shutil.copytree(images("gpus-8"), root / place)
    shutil.copy2(OURS, root / "nvidia-smi")
    done = subprocess.run(
        ["/nvidia-smi", *arguments],
        env={},
        **as_user(uid),
        preexec_fn=lambda: _enter(root),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("this machine gives an ordinary user no user namespace")
    expected = Smi(OURS).run(*arguments, image=images("gpus-8"))
    assert (done.returncode, done.stderr) == (0, "")
    skipped = 1 if not arguments else 0
    assert done.stdout.split("\n")[skipped:] == expected.output.split("\n")[skipped:]


def test_it_is_one_file_that_loads_nothing() -> None:
    """A static program: no interpreter, nothing needed."""
    headers = subprocess.run(["readelf", "-lW", OURS], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers
    assert "NEEDED" not in headers
