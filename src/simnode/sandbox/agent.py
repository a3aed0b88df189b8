"""The agent of a local node: `python -m simnode.sandbox.agent --root DIR --devices KIND …`, started by init.

It reads what the launcher compiled from one descriptor, keeps the node as that says and as it is told through the
control socket, and reports on another descriptor (native/init/init.h): "staged", or "failed WHY" if the first wave
fails. It logs warnings and errors only, a line each; those of the first wave are in the report.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from simnode.agent import Agent, AgentConfig, Reports, ShutdownError, Staged
from simnode.agent.logs import Outlet
from simnode.agent.serving import served
from simnode.contracts import Update
from simnode.control_client import SOCKET
from simnode.host import Host
from simnode.refusals import told
from simnode.sandbox.complaints import complain
from simnode.sandbox.handover import Handover
from simnode.sandbox.namespaces import die_with_parent
from simnode.sandbox.spawn import REPORT, STATE
from simnode.simulators import Devices
from simnode.simulators.fabricmanager import FabricManager
from simnode.simulators.gpudriver import DriverFiles, GPUDriver, machine_kernel
from simnode.simulators.imex import IMEX, Software
from simnode.simulators.migcaps import MIGCaps
from simnode.simulators.nvlink import NVLink
from simnode.simulators.pcibus import PCIBus
from simnode.sources.file import GENERATION, OVERRIDES, FileSource, Inputs
from simnode.sources.fixed import utc_now

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SHORTEST_PIPE = 512
_FLUSH = 1.0


def main(words: Sequence[str]) -> int:
    """Serve until told to end (SIGTERM), then discard everything."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    if "--parent" in options:
        die_with_parent(int(options["--parent"]), signal.SIGKILL)
    log = logging.getLogger("simnode")
    logging.getLogger("asyncio").parent = log
    log.propagate = False
    log.addHandler(logging.NullHandler())
    try:
        asyncio.run(_serve(options, log))
    except OSError as error:
        _report(f"failed {told(error)}")
        return 1
    except ShutdownError as error:
        complain(f"not everything was taken away: {error}")
        return 1
    finally:
        for handler in log.handlers:
            if isinstance(handler, Outlet):
                handler.finish(_FLUSH)
    return 0


async def _serve(options: Mapping[str, str], log: logging.Logger) -> None:
    root = Path(options["--root"])
    outcome = _Outcome(log, reported=(root / GENERATION).exists())
    source = _source(root, log, outcome)
    agent = Agent(_configured(options, root, source, log))
    agent.staged().listen(outcome.turned)
    async with served(agent, source, root, log, utc_now):
        serving = asyncio.create_task(agent.run(), name="agent")
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        with suppress(asyncio.CancelledError):
            await serving
    with suppress(OSError):
        (root / SOCKET).parent.rmdir()


def _source(root: Path, log: logging.Logger, outcome: _Outcome) -> _Source:
    """A node that follows a file reads that itself: by now it may be another than the launcher saw."""
    handover = Handover.decoded(os.pread(STATE, os.fstat(STATE).st_size, 0))
    inputs = Inputs(Path(handover.follow) if handover.follow else handover.document, root / OVERRIDES)
    initial = None if handover.follow else handover.state
    source = _Source(inputs, handover.options, os.environ, root / GENERATION, log, initial=initial)
    source.outcome = outcome
    return source


def _configured(options: Mapping[str, str], root: Path, source: FileSource, log: logging.Logger) -> AgentConfig:
    host = Host(root, boot_id=_BOOT_ID.read_text().strip())
    files = DriverFiles(*(Path(options[name]).read_bytes() for name in ("--library", "--nvidia-smi", "--cuda")))
    devices = cast(Devices, options["--devices"])
    kernel = machine_kernel()
    driver = GPUDriver(host, files, devices, os.uname().machine, kernel)
    reports = Reports()
    fabric_manager = FabricManager(host, reports.report, log)
    imex = IMEX(host, devices, kernel.procfs, Software(root, reports.report, log))
    simulators = (driver, fabric_manager, imex, MIGCaps(host, devices, kernel.procfs), NVLink(host), PCIBus(host))
    return AgentConfig(simulators=simulators, source=source, log=log, reports=reports)


class _Outcome:
    """Tells init once how the node's beginning went, and lets the log speak from then on.

    `reported`: it was told by an agent before this one, which has crashed.
    """

    def __init__(self, log: logging.Logger, *, reported: bool) -> None:
        self._log = log
        self._told = reported
        if reported:
            self._speak()

    def turned(self, staged: Staged) -> None:
        """The first wave is over, one way or the other."""
        if staged.is_set() or staged.failures:
            self.tell("staged" if staged.is_set() else f"failed {'; '.join(map(str, staged.failures))}")

    def tell(self, line: str) -> None:
        """The outcome; only the first one counts."""
        if not self._told:
            self._told = True
            _report(line)
            asyncio.get_running_loop().call_soon(self._speak)

    def _speak(self) -> None:
        outlet = Outlet()
        outlet.setFormatter(logging.Formatter("simnode: agent: %(message)s"))
        outlet.setLevel(logging.WARNING)
        self._log.addHandler(outlet)


class _Source(FileSource):
    """One whose document is wrong before there was any State ends the node's beginning."""

    outcome: _Outcome

    async def watch(self) -> AsyncIterator[Update]:
        """As FileSource."""
        async for update in super().watch():
            if update.error is not None:
                self.outcome.tell(f"failed {update.error}")
            yield update


def _report(line: str) -> None:
    with suppress(BrokenPipeError):
        os.write(REPORT, line.encode()[: _SHORTEST_PIPE - 1] + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
