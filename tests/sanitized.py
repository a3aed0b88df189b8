"""The C half under the address and undefined behaviour sanitizers: compiled once, and kept beside the build.

To compile takes longer than what is tested with it, and rooms want the same files: who comes first compiles, the others
wait. A file is compiled again when anything that its making depends on has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from simnode.nvml import header

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "native"
KEPT = ROOT / "build" / "sanitized"
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", "-O0")


def objects(folders: Iterable[str], spare: Path) -> list[Path]:
    """What every C file of these folders of native/, and of what is generated for them, was compiled to.

    In `spare` if nothing can be kept: the checkout may belong to somebody else.
    """
    try:
        with _locked(KEPT):
            return _made(folders, KEPT)
    except OSError:
        return _made(folders, spare)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _made(folders: Iterable[str], place: Path) -> list[Path]:
    generated = place / "generated"
    generated.mkdir(exist_ok=True)
    header.write(generated)
    cc = shlex.split(os.environ.get("CC") or "cc")
    include = [f"-I{path}" for path in (NATIVE / "nvml", NATIVE, generated)]
    command = [*cc, "-std=c11", *FLAGS, *include, "-c"]
    shared = hashlib.sha256(subprocess.check_output([*cc, "--version"]) + shlex.join(command).encode())
    for path in sorted(
        path for root in (NATIVE, generated) for kind in ("h", "inc") for path in root.rglob(f"*.{kind}")
    ):
        shared.update(path.read_bytes())

    def compiled(source: Path) -> Path:
        key = shared.copy()
        key.update(source.read_bytes())
        output = place / f"{source.parent.name}-{source.stem}.o"
        made_of = output.with_suffix(".key")
        if not output.exists() or not made_of.exists() or made_of.read_text() != key.hexdigest():
            subprocess.run([*command, source, "-o", output], check=True)
            made_of.write_text(key.hexdigest())
        return output

    sources = [path for folder in folders for root in (NATIVE, generated) for path in (root / folder).glob("*.c")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compiled, sorted(sources)))
