"""What the build makes: its contract is checked by something that can tell a breach; nothing is made twice."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import elf

REPOSITORY = Path(__file__).resolve().parents[2]
NATIVE = REPOSITORY / "src" / "simnode" / "_native"

SONAME = "-Wl,-soname,libnvidia-ml.so.1"
NODELETE = "-Wl,-z,nodelete"
KEPT = (SONAME, NODELETE)


def built(directory: Path, source: str, *options: str, name: str = "library.so") -> Path:
    """A shared library of one source."""
    output = directory / name
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-fno-stack-protector",
        "-o",
        str(output),
        "-x",
        "c",
        "-",
        "-x",
        "none",
        *options,
    ]
    subprocess.run(command, input=source, text=True, check=True)
    return output


def test_a_good_library_has_no_fault(tmp_path: Path) -> None:
    """One NVML function, nothing else."""
    assert elf.faults(built(tmp_path, "int nvmlInit_v2(void) { return 0; }", *KEPT)) == []


@pytest.mark.parametrize(
    ("source", "options", "fault"),
    [
        pytest.param("int leaked(void) { return 0; }", KEPT, "exports leaked", id="foreign-export"),
        pytest.param(
            "int puts(const char *); int nvmlX(void) { return puts(0); }",
            KEPT,
            "imports puts, which is not in the allowed list of native/elf.py",
            id="import-not-allowed",
        ),
        pytest.param("int nvmlX;", (NODELETE,), "its SONAME is not libnvidia-ml.so.1", id="no-soname"),
        pytest.param("int nvmlX;", (SONAME,), "it can be unloaded while handles point into it", id="unloadable"),
        pytest.param("int nvmlX;", (*KEPT, "-Wl,--no-as-needed", "-lm"), "needs libm.so.6", id="foreign-library"),
        pytest.param("char nvmlX[400000] = {1};", KEPT, "bytes, at most 307200 allowed", id="too-big"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, source: str, options: tuple[str, ...], fault: str) -> None:
    """Each clause of the contract, broken alone."""
    found = elf.faults(built(tmp_path, source, *options))
    assert len(found) == 1
    assert fault in found[0]


def test_a_name_of_a_newer_glibc_is_found(tmp_path: Path) -> None:
    """Linked against a C library that has `close` only since 2.34."""
    versions = tmp_path / "versions"
    versions.write_text("GLIBC_2.34 { close; };")
    newer = ("-nostdlib", "-Wl,-soname,libc.so.6", f"-Wl,--version-script={versions}")
    libc = built(tmp_path, "int close(int file) { return file; }", *newer, name="libc.so.6")
    source = "int close(int); int nvmlX(void) { return close(0); }"
    library = built(tmp_path, source, *KEPT, "-nostdlib", str(libc))
    assert elf.faults(library) == ["imports close@GLIBC_2.34, newer than glibc 2.17"]


def test_the_shipped_library_keeps_its_contract() -> None:
    """The one in the package."""
    assert elf.faults(NATIVE / "libnvidia-ml.so") == []


def test_the_shipped_library_offers_every_function_of_the_header() -> None:
    """A function that a consumer binds eagerly must resolve, even if it answers NOT_SUPPORTED."""
    header = next(file for file in metadata.files("nvidia-nvml-dev") or [] if file.name == "nvml.h")
    text = Path(str(header.locate())).read_text()
    declared = set(re.findall(r"^(?:nvmlReturn_t|const char\s*\*)\s*DECLDIR\s+(nvml\w+)\s*\(", text, re.M))
    assert len(declared) > 300
    assert declared - elf.exports(NATIVE / "libnvidia-ml.so") == set()


@pytest.mark.parametrize("program", ["nvidia-smi", "init"])
def test_programs_are_static(program: str) -> None:
    """They run where there is no libc at all."""
    headers = subprocess.run(["readelf", "-lW", NATIVE / program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers


def test_nothing_is_made_twice() -> None:
    """A second build finds everything up to date."""
    script = REPOSITORY / "native" / "build.py"
    subprocess.run([sys.executable, script], check=True, capture_output=True)
    assert subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout == ""
