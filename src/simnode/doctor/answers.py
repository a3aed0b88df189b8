"""What programs and the agent answer, each asked from a process that may crash or hang without taking us along."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from simnode.control_client import SOCKET, ControlError, call

PATIENCE = 20.0
HANGS, FLOODS = 1 << 16, 1 << 17
"""The exit codes of programs that had to be killed: not done after PATIENCE seconds; more than LONGEST bytes said."""
LONGEST = 1 << 20

_PROBE = Path(__file__).with_name("probe.py")
_AGENT_PATIENCE = 10.0


class GPU(Struct, frozen=True):
    """What NVML says of a GPU: `fault` is its refusal, `migs` are (GPU instance, compute instance) ids.

    `fabric` is the state of its registration with the fabric (nvml.h NVML_GPU_FABRIC_STATE_*) and that one's status.
    """

    index: int
    minor: int
    uuid: str
    fault: str
    migs: tuple[tuple[int, int], ...]
    fabric: tuple[int, int] | None


class NVML(Struct, frozen=True):
    """What the library answers: `fault` is why it does not, `code` is nvmlInit's answer (-1 without one)."""

    fault: str
    code: int = -1
    driver_version: str = ""
    gpus: tuple[GPU, ...] = ()


class Health(msgspec.Struct):
    """What a probe of the agent answers: the components by name, each with what is wrong."""

    ok: bool
    reason: str
    components: dict[str, Part]


class Part(msgspec.Struct):
    """One component."""

    ok: bool
    reason: str


class Probes(msgspec.Struct):
    """The agent's probes."""

    live: Health
    staged: Health
    ready: Health


class Status(msgspec.Struct):
    """An agent's `status`, as far as it concerns us."""

    health: Probes
    source_error: str | None = None


class Agent(Struct, frozen=True):
    """What the agent answers to `status`; `fault` is why it does not, and then there is no status."""

    fault: str
    status: Status | None = None


def ask_nvml(library: str, environ: Mapping[str, str]) -> NVML:
    """Load `library` in a fresh process and look at every GPU."""
    code, said = run([sys.executable, "-I", "-S", str(_PROBE), library], environ)
    if code != 0:
        return NVML(ended(code, said))
    try:
        answer = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        return NVML("ends its program, or writes to its output")
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
    try:
        os.seteuid(owner)
        status = call(f"{node_root}/{SOCKET}", {"verb": "status"}, _AGENT_PATIENCE, whose="agent")
        return Agent("", msgspec.convert(status, Status))
    except ControlError as error:
        return Agent("; ".join(error.faults).removeprefix("agent: "))
    except OSError as error:
        return Agent(f"cannot be asked as uid {owner}: {error.strerror}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return Agent("is not answered as an agent does")
    finally:
        os.seteuid(own)


def run(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """How a program ended and what it said; nothing but `environ` is in its environment."""
    try:
        process = subprocess.Popen(
            command, env={"LC_ALL": "C", **environ}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd="/",
        )  # fmt: skip
    except OSError as error:
        return 127, error.strerror or str(error)
    until = time.monotonic() + PATIENCE
    assert process.stdout is not None
    with process.stdout:
        try:
            said = _heard(process.stdout.fileno(), until)
            code = process.wait(max(0.0, until - time.monotonic())) if len(said) <= LONGEST else FLOODS
        except (TimeoutError, subprocess.TimeoutExpired):
            code, said = HANGS, b""
        finally:
            process.kill()
            process.wait()
    return code, said.decode(errors="replace").strip()


def ended(code: int, said: str) -> str:
    """How a program failed, in words."""
    if code == HANGS:
        return f"gives no answer within {PATIENCE:g} s"
    if code == FLOODS:
        return f"says more than {LONGEST >> 20} MiB"
    if code < 0:
        return f"kills its program with signal {-code}"
    return f"fails with exit code {code}" + (f": {said.splitlines()[-1]}" if said else "")


def _heard(output: int, until: float) -> bytes:
    """All that is said, or a little more than LONGEST bytes of it; raises TimeoutError."""
    said = b""
    while len(said) <= LONGEST:
        if not select.select([output], [], [], max(0.0, until - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(output, 1 << 16)
        if not piece:
            break
        said += piece
    return said
