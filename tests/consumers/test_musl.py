"""The libraries serve programs of another C library: the same files load under musl."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Node
from tests.consumers.expected import gpus

pytestmark = pytest.mark.consumer


@dataclass(frozen=True)
class Musl:
    """The programs of this folder by the name of their source, and the loader that starts them."""

    programs: dict[str, Path]
    loader: Path

    def lines(self, node: Node) -> dict[str, list[str]]:
        """What they print. musl searches other directories, so it is told that of the machine's C library."""
        maps = Path("/proc/self/maps").read_text().splitlines()
        directory = next(Path(line.split()[-1]).parent for line in maps if line.endswith("/libc.so.6"))
        start: list[str | Path] = ["env", f"LD_LIBRARY_PATH={directory}", self.loader]
        ended = node.several([[*start, program] for program in self.programs.values()])
        assert [(one.status, one.errors) for one in ended] == [(0, "")] * len(ended)
        return {name: one.output.splitlines() for name, one in zip(self.programs, ended, strict=True)}


@pytest.fixture(scope="module")
def musl(program: Obtain) -> Iterator[Musl]:
    """read.c and devices.c built against musl, where every user can run them."""
    loader, include = program("musl").path, program("musl-dev").path
    libraries = program("musl-dev").root / "usr" / "lib" / include.name
    compile_flags: list[str | Path] = ["-nostdinc", "-isystem", include, "-fno-stack-protector", "-U_FORTIFY_SOURCE"]
    start = [libraries / name for name in ("Scrt1.o", "crti.o")]
    link_flags: list[str | Path] = ["-pie", "-nostdlib", f"-Wl,-dynamic-linker,{loader}", *start]
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        programs = {name: Path(directory) / name for name in ("read", "devices")}
        for name, output in programs.items():
            compiled = output.with_suffix(".o")
            source = Path(__file__).with_name(f"{name}.c")
            subprocess.run(["cc", "-c", *compile_flags, source, "-o", compiled], check=True)
            command = ["cc", *link_flags, compiled, loader, libraries / "crtn.o", "-o", output]
            subprocess.run(command, check=True)
        yield Musl(programs, loader)


def test_a_musl_program_reads_every_gpu_and_lists_the_cuda_devices(ordinary: Node, musl: Musl) -> None:
    lines = musl.lines(ordinary)
    assert [int(line) for line in lines["read"]] == [gpu.temperature for gpu in gpus()]
    listed = [line.split(", ") for line in lines["devices"]]
    assert [(name, f"0000{bus}") for name, _, _, bus in listed] == [(gpu.name, gpu.bus_id) for gpu in gpus()]
