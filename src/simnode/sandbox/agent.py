"""The agent of a local node: `python -m simnode.sandbox.agent --root DIR --devices KIND …`, started by init.

It reads the State that the launcher compiled from one descriptor, keeps the node as that says, and reports on another
(native/init/init.h): "staged", or "failed WHY" if the first wave fails. It logs warnings and errors only, a line each;
those of the first wave are in the report.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, cast

import msgspec

from simnode.agent import Agent, AgentConfig, ShutdownError, Staged
from simnode.host import Host
from simnode.sandbox.namespaces import die_with_parent
from simnode.sandbox.spawn import REPORT, STATE
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.sources.fixed import FixedSource
from simnode.state import State

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SHORTEST_PIPE = 512

Devices = Literal["node", "stand-in", "none"]


def main(words: Sequence[str]) -> int:
    """Serve until told to end (SIGTERM), then discard everything."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    if "--parent" in options:
        die_with_parent(int(options["--parent"]), signal.SIGKILL)
    state = msgspec.msgpack.decode(os.pread(STATE, os.fstat(STATE).st_size, 0), type=State)
    host = Host(options["--root"], boot_id=_BOOT_ID.read_text().strip())
    files = DriverFiles(Path(options["--library"]).read_bytes(), Path(options["--nvidia-smi"]).read_bytes())
    driver = GPUDriver(host, files, cast(Devices, options["--devices"]), os.uname().machine)
    log = logging.getLogger("simnode")
    log.propagate = False
    log.addHandler(logging.NullHandler())
    try:
        asyncio.run(_serve(AgentConfig(simulators=(driver,), source=FixedSource(state), log=log)))
    except ShutdownError as error:
        print(f"simnode: not everything was taken away: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(config: AgentConfig) -> None:
    agent = Agent(config)
    agent.staged.listen(_FirstWave(config.log).turned)
    serving = asyncio.create_task(agent.run(), name="agent")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


class _FirstWave:
    """Tells init how the first wave went, and lets the log speak from then on."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = False

    def turned(self, staged: Staged) -> None:
        if self._told or not (staged.is_set() or staged.failures):
            return
        self._told = True
        _report("staged" if staged.is_set() else f"failed {'; '.join(map(str, staged.failures))}")
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("simnode: agent: %(message)s"))
        handler.setLevel(logging.WARNING)
        self._log.addHandler(handler)


def _report(line: str) -> None:
    with suppress(BrokenPipeError):
        os.write(REPORT, line.encode()[: _SHORTEST_PIPE - 1] + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
