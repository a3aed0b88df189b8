"""libnvidia-ml.so.1 in this process, on images that each test publishes."""

from __future__ import annotations

import ctypes
import os
import shlex
import site
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from simnode.nvml.cells import IMAGE
from simnode.nvml.image import Publisher, encode
from simnode.state import State, Value
from tests.nvml.nodes import node, runtime

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "simnode" / "_native" / "libnvidia-ml.so"
HEADER = "nvidia/cu13/include/nvml.h"

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 0, 1, 2, 3, 6
NO_PERMISSION, INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, TIMEOUT, GPU_IS_LOST = 4, 7, 9, 10, 15
OTHER_FORMAT, WRONG_TAG = 18, 25

GUARD = 0xA5

Handle = ctypes.c_void_p


class Refused(AssertionError):
    """Raised when a call that has to succeed does not; `code` is its nvmlReturn_t."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} answered {code}")
        self.code = code


class Library:
    """The library's functions, by name. Pointers have to be ctypes objects: a bare int is 32 bits wide."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)

    def code(self, name: str, *arguments: object) -> int:
        """Calls a function and gives its nvmlReturn_t."""
        return int(getattr(self._library, name)(*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function that has to succeed."""
        if (code := self.code(name, *arguments)) != SUCCESS:
            raise Refused(name, code)

    def handle(self, index: int = 0) -> Handle:
        """The handle of a visible index."""
        device = Handle()
        self.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        return device

    def number(self, name: str, *arguments: object) -> int:
        """What a function writes into its last parameter, an unsigned int."""
        out = ctypes.c_uint(0xDEADBEEF)
        self.call(name, *arguments, ctypes.byref(out))
        return out.value

    def wide(self, name: str, *arguments: object) -> int:
        """What a function writes into its last parameter, an unsigned long long."""
        out = ctypes.c_ulonglong(0xDEADBEEF)
        self.call(name, *arguments, ctypes.byref(out))
        return out.value

    def numbers(self, name: str, count: int, *arguments: object) -> tuple[int, ...]:
        """What a function writes into its last `count` parameters, unsigned ints."""
        outs = [ctypes.c_uint(0xDEADBEEF) for _ in range(count)]
        self.call(name, *arguments, *map(ctypes.byref, outs))
        return tuple(out.value for out in outs)

    def error_text(self, code: int) -> str:
        """What nvmlErrorString calls a code."""
        function = self._library.nvmlErrorString
        function.restype = ctypes.c_char_p
        return str(function(code).decode())

    def text(self, name: str, *arguments: object, length: int = 96) -> str:
        """What a function writes into its last parameters, a buffer and its length."""
        out = ctypes.create_string_buffer(length)
        self.call(name, *arguments, out, length)
        return out.value.decode()

    def stop(self) -> None:
        """Ends every nvmlInit that is open."""
        while self.code("nvmlShutdown") == SUCCESS:
            pass


class Scene:
    """One image file, its publisher, and the library that reads it."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.library = library
        self.folder = folder
        self.path = folder / "image.1"
        with self.path.open("wb") as file:
            file.truncate(IMAGE.size)
        self.publisher = Publisher(self.path)

    def publish(self, state: State) -> None:
        """Let the library see `state`."""
        self.publisher.publish(encode(state))

    def start(self, state: State) -> Library:
        """Publish and initialise."""
        self.publish(state)
        self.library.call("nvmlInit_v2")
        return self.library


def one(values: Mapping[str, Value]) -> State:
    """A node of one GPU that reads these."""
    return node(runtime(values))


def filled(library: Library, name: str, size: int, tag: int | None = None, *before: object) -> bytes:
    """What a function writes into a struct of `size` bytes, having left everything behind it alone."""
    buffer = (ctypes.c_ubyte * (size + 64))(*[GUARD] * (size + 64))
    if tag is not None:
        struct.pack_into("<I", buffer, 0, tag)
    library.call(name, library.handle(), *before, buffer)
    assert bytes(buffer)[size:] == bytes([GUARD]) * 64
    return bytes(buffer)[:size]


@pytest.fixture(scope="session")
def library() -> Library:
    """The library, loaded once: it cannot be unloaded."""
    return Library(LIBRARY)


@pytest.fixture
def scene(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """An image of its own for the test; the library is not initialised before and after."""
    made = Scene(library, tmp_path)
    monkeypatch.setenv("SIMNODE_IMAGE", str(tmp_path))
    yield made
    library.stop()
    made.publisher.close()


Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles C files with extra flags and gives the program's path."""
    folder = tmp_path_factory.mktemp("programs")

    def build(name: str, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
        cc = shlex.split(os.environ.get("CC") or "cc")
        output = folder / name
        command = [*cc, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *map(str, sources), *flags]
        done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return output

    return build


@pytest.fixture(scope="session")
def nvml_h() -> Path:
    """The real header, the oracle of every layout: from nvidia-nvml-dev, which is never shipped."""
    for folder in site.getsitepackages():
        if (path := Path(folder) / HEADER).exists():
            return path
    pytest.skip("nvidia-nvml-dev is not installed")
