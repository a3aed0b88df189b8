"""The layouts in abi.h and its parts against the real header: both compiled, all sizes, offsets, constants compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.nvml_library.conftest import ROOT, Compile

ABI = ROOT / "native" / "nvml" / "abi.h"  # which includes the others
STRUCT = re.compile(r"typedef (?:struct|union) \{((?:(?!\n\}).)*)\n\} (nvml\w+);", re.S)
MEMBER = re.compile(r"\b(\w+)(?:\[\w+\])?;")
ENUM = re.compile(r"enum \{(.*?)\}", re.S)
CONSTANT = re.compile(r"\b(NVML_\w+)")
# What the header says in words only.
NOT_IN_HEADER = {"NVML_PROCESS_MODE_COMPUTE", "NVML_PROCESS_MODE_GRAPHICS", "NVML_PROCESS_MODE_MPS"}
# A member that is a struct of its own inside, without a name.
INNER = re.compile(r"struct \{[^}]*\} (\w+)(?:\[\w+\])?;", re.S)


def ours() -> str:
    """All of it, without comments."""
    text = "".join(path.read_text() for path in sorted(ABI.parent.glob("abi*.h")))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs() -> dict[str, list[str]]:
    """Members by struct, in abi.h."""
    text = ours()
    found = {}
    for body, name in STRUCT.findall(text):
        inner = INNER.findall(body)
        found[name] = [*MEMBER.findall(INNER.sub("", body)), *inner]
    return found


def constants() -> list[str]:
    """Every NVML_ constant that abi.h defines."""
    text = ours()
    return [name for body in ENUM.findall(text) for name in CONSTANT.findall(body) if name not in NOT_IN_HEADER]


def probe(header: str) -> str:
    """A program that prints what `header` says about all of them."""
    lines = [f'#include "{header}"', "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for name, members in structs().items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{member} %zu\\n", offsetof({name}, {member}));' for member in members]
    lines += [f'printf("{name} %lld\\n", (long long){name});' for name in constants()]
    return "\n".join([*lines, "return 0; }\n"])


@pytest.fixture(scope="module")
def answers(nvml_h: Path, compile_c: Compile, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Both probes' lines."""
    folder = tmp_path_factory.mktemp("abi")
    found = []
    for name, header in (("ours", ABI), ("real", nvml_h)):
        source = folder / f"{name}.c"
        source.write_text(probe(str(header)))
        flags = (f"-I{ROOT / 'native' / 'nvml'}", "-D_GNU_SOURCE")
        found.append(subprocess.check_output([compile_c(f"abi-{name}", source, flags=flags)], text=True).splitlines())
    return found[0], found[1]


def test_every_struct_and_constant_is_as_in_the_real_header(answers: tuple[list[str], list[str]]) -> None:
    ours, real = answers
    assert len(ours) > 300
    assert [pair for pair in zip(ours, real, strict=True) if pair[0] != pair[1]] == []
