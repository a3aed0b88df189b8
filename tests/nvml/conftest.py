"""An empty image, its publisher, and a reader that keeps to the rules of native/nvml/rules.h."""

from __future__ import annotations

import ctypes
import mmap
import os
import shlex
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simnode.nvml import header
from simnode.nvml.cells import BY_KEY, DEVICE, IMAGE, NODE, SLOT
from simnode.nvml.image import LIBRARY, Publisher
from simnode.nvml.layout import COUNTER, GAUGE, LINK, MIG, RECORDS

ROOT = Path(__file__).parents[2]
NATIVE = Path(__file__).parent / "native"
PUBLISH = tuple(sorted((ROOT / "native" / "publish").glob("*.c")))
WARNINGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles C files, once for each set of flags, against the generated layout; gives the program's path."""
    folder = tmp_path_factory.mktemp("native")
    header.write(folder)
    made: dict[tuple[object, ...], Path] = {}

    def build(*sources: Path, flags: tuple[str, ...] = ()) -> Path:
        key = (sources, flags)
        if key not in made:
            output = folder / f"{sources[0].stem}-{len(made)}"
            cc = shlex.split(os.environ.get("CC") or "cc")
            include = [f"-I{path}" for path in (folder, ROOT / "native", NATIVE)]
            subprocess.run([*cc, *WARNINGS, *flags, *include, *sources, "-o", output, "-pthread"], check=True)
            made[key] = output
        return made[key]

    return build


@pytest.fixture(scope="session")
def rules(compile_c: Compile) -> ctypes.CDLL:
    """The rules, callable."""
    library = ctypes.CDLL(str(compile_c(NATIVE / "reader.c", flags=("-shared", "-fPIC"))))
    library.test_load.restype = ctypes.c_int64
    library.test_gauge.restype = ctypes.c_int64
    library.test_clock.restype = ctypes.c_uint64
    library.test_growth.restype = ctypes.c_uint64
    library.test_growth.argtypes = [ctypes.c_char_p] + [ctypes.c_uint64] * 4
    library.test_load.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    library.test_gauge.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    library.test_integral.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p]
    library.test_copy.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
    library.test_counter.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p]
    return library


class Reader:
    """Reads a mapped image by the rules; values as Python's."""

    def __init__(self, path: Path, rules: ctypes.CDLL) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), IMAGE.size)
        self._image: ctypes.Array[ctypes.c_char] | None = (ctypes.c_char * IMAGE.size).from_buffer(self._map)
        self._rules = rules

    def raw(self, offset: int, size: int) -> bytes:
        """Bytes of the active slot, all of one publish."""
        out = ctypes.create_string_buffer(size)
        assert self._rules.test_copy(self._image, offset, out, size) == 1
        return out.raw

    def node(self, name: str) -> int:
        """A number of the node."""
        size = {member.name: member.kind for member in NODE.members}[name]
        return int.from_bytes(self.raw(NODE.offsets[name], 8 if size == "u64" else 4), "little")

    def device(self, index: int, name: str) -> int:
        """A number of a device that is no cell, such as its epoch."""
        return int.from_bytes(self.raw(self._at(index) + DEVICE.offsets[name], 4), "little")

    def mig_epoch(self, index: int, mig: int) -> int:
        """How many identities a MIG index has had."""
        at = self._at(index) + DEVICE.offsets["mig"] + mig * MIG.size + MIG.offsets["epoch"]
        return int.from_bytes(self.raw(at, 4), "little")

    def cell(self, index: int, key: str) -> tuple[int | str, int]:
        """Value (a gauge's base, a counter's value at its anchor) and status of a cell."""
        cell = BY_KEY[key]
        record = RECORDS[cell.record]
        raw = self.raw(self._at(index) + DEVICE.offsets[cell.member], record.size)
        (status,) = struct.unpack_from("<I", raw, record.offsets["status"])
        if cell.kind == "text":
            return raw[: cell.length].rstrip(b"\0").decode(), status
        form, name = {
            "word": ("<I", "value"),
            "int": ("<i", "value"),
            "wide": ("<Q", "value"),
            "gauge": ("<q", "base"),
            "counter": ("<Q", "value"),
        }[cell.kind]
        return struct.unpack_from(form, raw, record.offsets[name])[0], status

    def counter(self, index: int, key: str) -> int:
        """What a counter reads now."""
        return self._counter(index, DEVICE.offsets[BY_KEY[key].member])

    def link_counter(self, index: int, link: int, name: str) -> int:
        """What a link's traffic counter reads now."""
        return self._counter(index, DEVICE.offsets["link"] + link * LINK.size + LINK.offsets[name])

    def anchor(self, index: int, key: str) -> int:
        """The tick at which a counter's present rule starts."""
        at = self._at(index) + DEVICE.offsets[BY_KEY[key].member] + COUNTER.offsets["anchor"]
        return int.from_bytes(self.raw(at, 8), "little")

    def gauge(self, index: int, key: str) -> int:
        """What a gauge reads now."""
        block = self.raw(self._at(index), DEVICE.size)
        at = DEVICE.offsets[BY_KEY[key].member]
        curve = block[DEVICE.offsets["curve"] :]
        return int(self._rules.test_gauge(block[at : at + GAUGE.size], curve, self._rules.test_clock()))

    def close(self) -> None:
        """Unmap the image."""
        self._image = None
        self._map.close()

    def _counter(self, index: int, offset: int) -> int:
        value = ctypes.c_uint64()
        assert self._rules.test_counter(self._image, index, offset, ctypes.byref(value)) == 1
        return value.value

    def _at(self, index: int) -> int:
        return SLOT.offsets["device"] + index * DEVICE.size


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A new image file: all zeros, all of it allocated."""
    path = tmp_path / "image.1"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(descriptor, 0, IMAGE.size)
    os.close(descriptor)
    return path


@pytest.fixture
def publisher(image: Path) -> Iterator[Publisher]:
    """The image's publisher."""
    assert LIBRARY.exists(), "native/build.py makes it: make native"
    with Publisher(image) as made:
        yield made


@pytest.fixture
def reader(image: Path, publisher: Publisher, rules: ctypes.CDLL) -> Iterator[Reader]:
    """A reader of that image."""
    del publisher
    made = Reader(image, rules)
    yield made
    made.close()
