"""What the build makes: its contract is checked by something that can tell a breach; nothing is made twice."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import build
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


def test_each_library_has_a_contract_of_its_own(tmp_path: Path) -> None:
    """libcuda.so has another SONAME and offers other names."""
    options = ("-Wl,-soname,libcuda.so.1", NODELETE)
    assert elf.faults(built(tmp_path, "int cuInit(void) { return 0; }", *options), elf.CUDA) == []
    found = elf.faults(built(tmp_path, "int nvmlInit(void) { return 0; }", *KEPT), elf.CUDA)
    assert found == ["its SONAME is not libcuda.so.1", "exports nvmlInit"]


@pytest.mark.parametrize(
    ("library", "contract"), [("libnvidia-ml.so", elf.NVML), ("libcuda.so", elf.CUDA)], ids=["nvml", "cuda"]
)
def test_a_shipped_library_keeps_its_contract(library: str, contract: elf.Contract) -> None:
    """Those in the package."""
    assert elf.faults(NATIVE / library, contract) == []


def test_the_shipped_library_offers_every_function_of_the_header() -> None:
    """A function that a consumer binds eagerly must resolve, even if it answers NOT_SUPPORTED."""
    header = next(file for file in metadata.files("nvidia-nvml-dev") or [] if file.name == "nvml.h")
    text = Path(str(header.locate())).read_text()
    declared = set(re.findall(r"^(?:nvmlReturn_t|const char\s*\*)\s*DECLDIR\s+(nvml\w+)\s*\(", text, re.M))
    assert len(declared) > 300
    assert declared - elf.exports(NATIVE / "libnvidia-ml.so") == set()


@pytest.mark.parametrize("program", ["nvidia-smi", "init", "container-hook"])
def test_programs_are_static(program: str) -> None:
    """They run where there is no libc at all."""
    headers = subprocess.run(["readelf", "-lW", NATIVE / program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers


@pytest.mark.parametrize("folder", sorted({folder for artefact in build.ARTEFACTS for folder in artefact.folders}))
def test_c_files_call_downward_only(folder: str) -> None:
    """No two files of a folder need each other, be it through a third. A list of all symbols calls none of them."""
    weak: dict[str, str] = {}
    strong: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for item in (build.BUILD / "objects" / folder).glob("*.o"):
        needs[item.stem] = set()
        for line in subprocess.run(["nm", "-gP", item], capture_output=True, text=True, check=True).stdout.splitlines():
            name, kind, *_ = line.split()
            if kind == "U":
                needs[item.stem].add(name)
            else:
                (weak if kind in "WV" else strong)[name] = item.stem
    home = weak | strong
    below = {file: {home[name] for name in names & home.keys()} - {file} for file, names in needs.items()}
    below.pop("entries", None)
    assert below
    assert tuple(TopologicalSorter(below).static_order())


def test_what_is_edited_while_it_is_compiled_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler has read the header before the edit and writes the object after it."""
    folder = tmp_path / "native" / "part"
    folder.mkdir(parents=True)
    (folder / "number.h").write_text("enum { NUMBER = 1 };\n")
    (folder / "part.c").write_text('#include "number.h"\n__attribute__((visibility("default"))) int number(void);\n')
    with (folder / "part.c").open("a") as source:
        source.write("int number(void) { return NUMBER; }\n")
    compiler = tmp_path / "cc"
    edit = f'echo "enum {{ NUMBER = 2 }};" > {folder}/number.h'
    compiler.write_text(f'#!/bin/sh\ncc "$@" && {{ [ -e {tmp_path}/once ] || {edit}; }} && touch {tmp_path}/once\n')
    with compiler.open("a") as script:
        script.write('for output; do :; done; sleep 0.02; touch "$output"\n')
    compiler.chmod(0o755)
    monkeypatch.setattr(build, "NATIVE", tmp_path / "native")
    monkeypatch.setattr(build, "BUILD", tmp_path / "build")
    monkeypatch.setattr(build, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(build, "GENERATORS", ())
    monkeypatch.setattr(build, "ARTEFACTS", (build.Artefact("libpart.so", ("part",), build.SHARED),))
    made = [build.Builder({"CC": str(compiler)}).all() for _ in range(3)]
    assert made == [["libpart.so"], ["libpart.so"], []]
    assert ctypes.CDLL(str(tmp_path / "package" / "libpart.so")).number() == 2


def test_nothing_is_made_twice() -> None:
    """A second build finds everything up to date."""
    script = REPOSITORY / "native" / "build.py"
    subprocess.run([sys.executable, script], check=True, capture_output=True)
    assert subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout == ""


def test_what_the_build_runs_needs_nothing_installed(tmp_path: Path) -> None:
    """The headers are generated before any dependency is there: without site-packages, as in a build environment."""
    environ = {"PYTHONPATH": str(REPOSITORY / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-S", "-m", "simnode.nvml.header", tmp_path], env=environ, check=True)
    assert list(tmp_path.iterdir())
