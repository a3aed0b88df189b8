"""libcuda.so.1 in a fresh process, on images that each test publishes: what cuInit fixes, it fixes for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simnode.nvml.cells import IMAGE
from simnode.nvml.image import Publisher, encode
from simnode.state import State

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "simnode" / "_native" / "libcuda.so"

SUCCESS, INVALID_VALUE, NOT_INITIALIZED, DEVICE_UNAVAILABLE, NO_DEVICE, INVALID_DEVICE = 0, 1, 3, 46, 100, 101
INVALID_CONTEXT, NOT_FOUND, NOT_SUPPORTED, SYSTEM_NOT_READY, DRIVER_MISMATCH = 201, 500, 801, 802, 803

_PRELUDE = """
import json, sys
from ctypes import *
cuda = CDLL(sys.argv[1])

def number(name, *arguments):
    "What a function writes into its first parameter, an int; [code] where it refuses."
    out = c_int(-77)
    code = getattr(cuda, name)(byref(out), *arguments)
    return [code] if code else out.value

def attribute(which, device=0):
    return number("cuDeviceGetAttribute", which, device)

def bus_id(device, length=13):
    out = create_string_buffer(32)
    code = cuda.cuDeviceGetPCIBusId(out, length, device)
    return [code] if code else out.value.decode()

def name(device, length=96):
    out = create_string_buffer(length + 8)
    code = cuda.cuDeviceGetName(out, length, device)
    return [code] if code else out.value.decode()

def seen():
    "cuInit's code if it fails, else the buses of the devices in CUDA's order."
    code = cuda.cuInit(0)
    return [code] if code else [bus_id(device)[5:7] for device in range(number("cuDeviceGetCount"))]

def show(value):
    print(json.dumps(value), flush=True)
"""


class Scene:
    """One image file, its publisher, and programs that read it through libcuda."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "image.1"
        with self.path.open("wb") as file:
            file.truncate(IMAGE.size)
        self.publisher = Publisher(self.path)

    def publish(self, state: State) -> None:
        """Let programs see `state`."""
        self.publisher.publish(encode(state))

    def start(self, program: str, **environ: str) -> subprocess.Popen[str]:
        """A program in Python, with _PRELUDE before it."""
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PRELUDE + program, str(LIBRARY)],
            env={"SIMNODE_IMAGE": str(self.path), **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, **environ: str) -> Any:
        """What the program shows at its end."""
        output, _ = (running := self.start(program, **environ)).communicate(timeout=30)
        assert running.returncode == 0
        return json.loads(output)

    def show(self, state: State, expression: str, **environ: str) -> Any:
        """The value of an expression on a node of this state, after cuInit."""
        self.publish(state)
        return self.run(f"assert cuda.cuInit(0) == 0\nshow({expression})", **environ)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """An image of its own for the test."""
    made = Scene(tmp_path)
    yield made
    made.publisher.close()
