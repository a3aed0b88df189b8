"""Builds the native half of simnode with the machine's C compiler: `python native/build.py`.

Used by the wheel's build hook and by the Makefile alike, so it needs nothing but Python and $CC. Whatever is older than
what it is made of, or was made by another command, is made again; everything else is left alone. A library that breaks
its contract (see elf.py) never reaches the package. Finished files replace old ones by rename, so a running program
keeps its own.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import elf

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
BUILD = ROOT / "build" / "native"
PACKAGE = ROOT / "src" / "simnode" / "_native"

# Fortify and the stack protector, some distributions' default, import symbols that musl or an older glibc lacks.
COMPILE = (
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
)
LINK = ("-s", "-Wl,--gc-sections", "-Wl,--build-id=none")
SHARED = ("-shared", "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--hash-style=both")


class BuildError(Exception):
    """Raised when a tool is missing or a step fails; the text is for the user."""


@dataclass(frozen=True)
class Generator:
    """A module of this repository, standard library only, run with the folder for generated sources as its argument."""

    module: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Artefact:
    """One file of the package: linked from every C file in `folders` of native/ and of what was generated."""

    name: str
    folders: tuple[str, ...]
    link: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    contract: elf.Contract | None = None


def _loadable(name: str, folders: tuple[str, ...], contract: elf.Contract) -> Artefact:
    """A library that any program may load; what it exports is in exports.map of its first folder."""
    exports = f"native/{folders[0]}/exports.map"
    link = (
        *SHARED,
        f"-Wl,-soname,{contract.soname}",
        "-Wl,-z,nodelete",
        "-Wl,-Bsymbolic",
        f"-Wl,--version-script={exports}",
    )
    return Artefact(name, folders, link, (exports,), contract)


GENERATORS = (Generator("simnode.nvml.header", ("src/simnode/nvml/*.py",)),)
ARTEFACTS = (
    _loadable("libnvidia-ml.so", ("nvml",), elf.NVML),
    _loadable("libcuda.so", ("cuda", "nvml"), elf.CUDA),
    Artefact("libpublish.so", ("publish",), SHARED),
    Artefact("nvidia-smi", ("smi", "nvml"), ("-static",)),
    Artefact("init", ("init",), ("-static",)),
    Artefact("container-hook", ("hook",), ("-static",)),
)


class Builder:
    """One build with one compiler. A file is as old as the moment its making began, so no edit meanwhile is lost."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._cc = shlex.split(environ.get("CC") or "cc")
        self._recipe = Path(__file__).stat().st_mtime
        if not self._cc or shutil.which(self._cc[0]) is None:
            raise BuildError(f"no C compiler: {' '.join(self._cc)} not found; on Debian: apt-get install gcc libc6-dev")

    def all(self) -> list[str]:
        """Brings every artefact up to date; the names of those that were made."""
        BUILD.mkdir(parents=True, exist_ok=True)
        PACKAGE.mkdir(parents=True, exist_ok=True)
        with (BUILD / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for generator in GENERATORS:
                self._generate(generator)
            folders = sorted({folder for artefact in ARTEFACTS for folder in artefact.folders})
            objects = {folder: self._compile(folder) for folder in folders}
            return [artefact.name for artefact in ARTEFACTS if self._link(artefact, objects)]

    def _generate(self, generator: Generator) -> None:
        output = BUILD / "generated"
        stamp = output / f"{generator.module}.stamp"
        if self._stale(stamp, _files(ROOT, generator.inputs)):
            output.mkdir(parents=True, exist_ok=True)
            begun = time.time_ns()
            _run([sys.executable, "-m", generator.module, str(output)], {**os.environ, "PYTHONPATH": str(ROOT / "src")})
            stamp.touch()
            os.utime(stamp, ns=(begun, begun))

    def _compile(self, folder: str) -> list[Path]:
        generated = BUILD / "generated" / folder
        sources = [*_files(NATIVE / folder, ["*.c"]), *_files(generated, ["*.c"])]
        headers = [*_files(NATIVE, ["**/*.h", "**/*.inc"]), *_files(BUILD / "generated", ["**/*.h", "**/*.inc"])]
        output = BUILD / "objects" / folder
        output.mkdir(parents=True, exist_ok=True)
        objects = [output / f"{source.stem}.o" for source in sources]
        include = [f"-I{path}" for path in (NATIVE / folder, NATIVE, generated, BUILD / "generated")]
        pairs = list(zip(sources, objects, strict=True))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for _ in pool.map(lambda pair: self._object(pair[0], pair[1], include, headers), pairs):
                pass
        for left in set(output.glob("*.o")) - set(objects):
            left.unlink()
        return objects

    def _object(self, source: Path, output: Path, include: Sequence[str], headers: Iterable[Path]) -> None:
        command = [*self._cc, *COMPILE, *include, "-c", str(source), "-o", str(output)]
        if self._stale(output, [source, *headers], command):
            begun = time.time_ns()
            _run(command)
            os.utime(output, ns=(begun, begun))
            _command_file(output).write_text(shlex.join(command))

    def _link(self, artefact: Artefact, objects: Mapping[str, list[Path]]) -> bool:
        inputs = [item for folder in artefact.folders for item in objects[folder]]
        final = PACKAGE / artefact.name
        record = BUILD / artefact.name
        command = [*self._cc, *LINK, *artefact.link, *map(str, inputs), "-o", str(record)]
        if final.exists() and not self._stale(record, [*inputs, *_files(ROOT, artefact.inputs)], command):
            return False
        begun = time.time_ns()
        _run(command)
        os.utime(record, ns=(begun, begun))
        if artefact.contract and (faults := elf.faults(record, artefact.contract)):
            record.unlink()
            raise BuildError(f"{artefact.name} breaks its contract: " + "; ".join(faults))
        _command_file(record).write_text(shlex.join(command))
        fresh = final.with_name(f".{artefact.name}.new")
        shutil.copyfile(record, fresh)
        fresh.chmod(0o755)
        fresh.rename(final)
        return True

    def _stale(self, output: Path, inputs: Iterable[Path], command: Sequence[str] | None = None) -> bool:
        if not output.exists() or output.stat().st_mtime < self._recipe:
            return True
        if command is not None:
            made_by = _command_file(output)
            if not made_by.exists() or made_by.read_text() != shlex.join(command):
                return True
        made = output.stat().st_mtime
        return any(path.stat().st_mtime > made for path in inputs)


def _command_file(output: Path) -> Path:
    return output.with_name(output.name + ".command")


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def _run(command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(command)}\n{done.stdout}{done.stderr}".rstrip())


def main() -> int:
    """Build all; exit 1 with the compiler's words when a step fails, 2 when a tool is missing."""
    try:
        made = Builder(os.environ).all()
    except BuildError as error:
        print(f"native: {error}", file=sys.stderr)
        return 2 if str(error).startswith("no C compiler") else 1
    if made:
        print(f"native: built {' '.join(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
