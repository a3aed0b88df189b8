"""Where this installation's own programs lie."""

from __future__ import annotations

import sys
from pathlib import Path

import simnode

NATIVE = Path(simnode.__file__).parent / "_native"


class NotInstalled(Exception):
    """Raised when a program that the build makes is missing; says which and how to get it."""


def native(name: str) -> str:
    """The path of a file that was compiled when the package was built; raises NotInstalled."""
    path = NATIVE / name
    if not path.is_file():
        raise NotInstalled(f"{path} is missing: this installation was not built; install the package again")
    return str(path)


def init_program() -> str:
    """The local node's init."""
    return native("init")


def agent_command(nvidia_smi: Path | None) -> tuple[str, ...]:
    """The agent of a local node, with the nvidia-smi it is to stage; -P keeps the working directory's modules out."""
    program = str(nvidia_smi) if nvidia_smi is not None else native("nvidia-smi")
    return (
        sys.executable, "-P", "-m", "simnode.sandbox.agent",
        "--library", native("libnvidia-ml.so"), "--cuda", native("libcuda.so"), "--nvidia-smi", program,
    )  # fmt: skip
