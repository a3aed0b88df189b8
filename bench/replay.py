"""What a program takes with an NVML library that takes no time: a recording of its calls is played back (replay.c).

`library` builds that library. `python -m bench.replay RECORDING LIBRARY PROGRAM [ARGUMENT...]`, inside a node, makes
the recording and sees to it that the program says the same with it as with the node's own library.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from simnode.nvml.exports import EXPORTS

NAME = "libnvidia-ml.so.1"
SLOTS = 256
DATE = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
TABLE = "nvmlInternalGetExportTable"


def library(folder: Path) -> Path:
    """Builds the library in `folder` with $CC and gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    entries, output = folder / "entries.c", folder / NAME
    entries.write_text("\n".join(_entries()))
    command = [os.environ.get("CC") or "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-z,now"]
    source = Path(__file__).with_name("replay.c")
    subprocess.run([*command, "-o", output, source, entries, "-ldl"], check=True)
    return output


def _entries() -> Iterator[str]:
    """One function for each export and each slot, which tells its number and hands its arguments on."""
    parameters = ", ".join(f"uintptr_t {letter}" for letter in "abcdef")
    names = [name for name in EXPORTS if name != TABLE]
    slots = [f"slot_{slot}" for slot in range(1, SLOTS)]
    yield "#include <stdint.h>"
    yield f"typedef uintptr_t call_fn({parameters});"
    yield "uintptr_t replay_call(uint32_t name, const uintptr_t *given);"
    yield "extern const char *const replay_names[];"
    yield "extern const uint32_t replay_named;"
    yield f"extern call_fn *const replay_slots[{SLOTS}];"
    for number, name in enumerate([*names, "", *slots]):
        if name:
            yield f"uintptr_t {name}({parameters});"
            yield f"uintptr_t {name}({parameters})"
            yield f"{{ return replay_call({number}, (const uintptr_t[]){{a, b, c, d, e, f}}); }}"
    yield f"const char *const replay_names[] = {{{', '.join(f'{chr(34)}{name}{chr(34)}' for name in names)}}};"
    yield f"const uint32_t replay_named = {len(names)};"
    yield f"call_fn *const replay_slots[{SLOTS}] = {{0, {', '.join(slots)}}};\n"


def _said(command: list[str], **environ: str) -> str:
    """What a program says, but for the time of day."""
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return DATE.sub("", done.stdout)


def _loaded() -> str:
    """The file that the node's own library is."""
    ctypes.CDLL(NAME)
    return next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libnvidia-ml" in line)


def main(recording: str, built: str, *command: str) -> None:
    """Record, play back, compare."""
    replayed = {"REPLAY": recording, "LD_LIBRARY_PATH": str(Path(built).parent)}
    real = _said(list(command))
    if _said(list(command), REPLAY_OF=_loaded(), **replayed) != real or _said(list(command), **replayed) != real:
        sys.exit("the replay does not say the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
