"""A program without any library sees the devices and the driver where the real ones are."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consumers.conftest import Node
from tests.consumers.expected import gpus

pytestmark = pytest.mark.consumer


@pytest.fixture(scope="module")
def look() -> Iterator[Path]:
    """The compiled program, where every user can run it."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        output, source = Path(directory) / "look", Path(__file__).with_name("look.c")
        subprocess.run(["cc", "-static", "-Wall", "-Wextra", "-Werror", "-o", output, source], check=True)
        yield output


def test_devices_and_driver_version(namespaced: Node, look: Path) -> None:
    """Every GPU's device by its minor number, the control devices, and the version of `--driver-version`."""
    options = ("--board", "h100", "--driver-version", "550.163.01")
    lines = namespaced.output(look, options=options).splitlines()
    devices = {line for line in lines if line.startswith("nvidia")}
    assert devices == {f"nvidia{gpu.index}" for gpu in gpus()} | {
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        "nvidia-modeset",
    }
    version = lines[len(devices)]
    assert version.startswith("NVRM version: NVIDIA UNIX")
    assert " 550.163.01 " in version
