"""The library serves programs of another C library: the same file loads under musl."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Node
from tests.consumers.expected import gpus

pytestmark = pytest.mark.consumer


@pytest.fixture(scope="module")
def read(program: Obtain) -> Iterator[tuple[Path, Path]]:
    """read.c built against musl, where every user can run it, and the loader that starts it."""
    loader, include = program("musl").path, program("musl-dev").path
    libraries = program("musl-dev").root / "usr" / "lib" / include.name
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        compiled, output = Path(directory) / "read.o", Path(directory) / "read"
        source = Path(__file__).with_name("read.c")
        compile_flags: list[str | Path] = [
            "-nostdinc",
            "-isystem",
            include,
            "-fno-stack-protector",
            "-U_FORTIFY_SOURCE",
        ]
        subprocess.run(["cc", "-c", *compile_flags, source, "-o", compiled], check=True)
        start = [libraries / name for name in ("Scrt1.o", "crti.o")]
        command: list[str | Path] = [
            "cc",
            "-pie",
            "-nostdlib",
            f"-Wl,-dynamic-linker,{loader}",
            *start,
            compiled,
            loader,
        ]
        subprocess.run([*command, libraries / "crtn.o", "-o", output], check=True)
        yield output, loader


def test_a_musl_program_reads_every_gpu(namespaced: Node, read: tuple[Path, Path]) -> None:
    """musl searches other directories, so it is told the one of the machine's C library."""
    program, loader = read
    maps = Path("/proc/self/maps").read_text().splitlines()
    directory = next(Path(line.split()[-1]).parent for line in maps if line.endswith("/libc.so.6"))
    lines = namespaced.output("env", f"LD_LIBRARY_PATH={directory}", loader, program).splitlines()
    assert [int(line) for line in lines] == [gpu.temperature for gpu in gpus()]
