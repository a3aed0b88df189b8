"""What programs and the agent answer, each asked from a process that may crash or hang without taking us along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simnode.control_client import SOCKET, ControlError, call

PATIENCE = 20.0
HANGS = 1 << 16
"""The exit code of a program that had to be killed, since it said nothing for PATIENCE seconds."""

_PROBE = Path(__file__).with_name("probe.py")
_AGENT_PATIENCE = 10.0


@dataclass(frozen=True)
class GPU:
    """What NVML says of a GPU: `fault` is its refusal, `migs` are (GPU instance, compute instance) ids.

    `fabric` is the state of its registration with the fabric (nvml.h NVML_GPU_FABRIC_STATE_*) and that one's status.
    """

    index: int
    minor: int
    uuid: str
    fault: str
    migs: tuple[tuple[int, int], ...]
    fabric: tuple[int, int] | None


@dataclass(frozen=True)
class NVML:
    """What the library answers: `fault` is why it does not, `code` is nvmlInit's answer (-1 without one)."""

    fault: str
    code: int = -1
    driver_version: str = ""
    gpus: tuple[GPU, ...] = ()


@dataclass(frozen=True)
class Agent:
    """What the agent answers to `status`; `fault` is why it does not."""

    fault: str
    status: Mapping[str, Any]


def ask_nvml(library: str, environ: Mapping[str, str]) -> NVML:
    """Load `library` in a fresh process and look at every GPU."""
    code, said = run([sys.executable, "-I", "-S", str(_PROBE), library], environ)
    if code != 0:
        return NVML(ended(code, said))
    answer = json.loads(said.splitlines()[-1])
    gpus = tuple(
        GPU(
            gpu["index"],
            gpu["minor"],
            gpu["uuid"],
            gpu["fault"],
            tuple((instance, compute) for instance, compute in gpu["migs"]),
            None if gpu["fabric"] is None else (gpu["fabric"][0], gpu["fabric"][1]),
        )
        for gpu in answer["gpus"]
    )
    return NVML(answer["fault"], answer["code"], answer["driver_version"], gpus)


def ask_agent(node_root: str, owner: int) -> Agent:
    """The agent's `status`, through the control socket of the node at `node_root`; it answers its `owner` alone."""
    own = os.geteuid()
    os.seteuid(owner)
    try:
        return Agent("", call(f"{node_root}/{SOCKET}", {"verb": "status"}, _AGENT_PATIENCE, whose="agent"))
    except ControlError as error:
        return Agent("; ".join(error.faults).removeprefix("agent: "), {})
    finally:
        os.seteuid(own)


def run(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """How a program ended and what it said; nothing but `environ` is in its environment."""
    try:
        done = subprocess.run(
            command, env={"LC_ALL": "C", **environ}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=PATIENCE, check=False, cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return HANGS, ""
    except OSError as error:
        return 127, error.strerror or str(error)
    return done.returncode, done.stdout.decode(errors="replace").strip()


def ended(code: int, said: str) -> str:
    """How a program failed, in words."""
    if code == HANGS:
        return f"gives no answer within {PATIENCE:g} s"
    if code < 0:
        return f"kills its program with signal {-code}"
    return f"fails with exit code {code}" + (f": {said.splitlines()[-1]}" if said else "")
