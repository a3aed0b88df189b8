"""A host's node: where everything of it lies below the host's root, and which simulators make it.

The agent may see the host's root elsewhere (/host in a container). It works below what it sees; what programs of the
host resolve themselves (the links in /run/nvidia/driver) is written with the host's own paths.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from simnode.agent import Reports
from simnode.agent.lock import LockHeldError, for_life
from simnode.cli.hostdirs import below
from simnode.contracts import Simulator
from simnode.control_client import HEALTH_SOCKET
from simnode.host import Host, Tree
from simnode.host.paths import STATE
from simnode.refusals import told
from simnode.simulators import Devices, TreeSimulator
from simnode.simulators.cri import CRI, Runtimes
from simnode.simulators.fabricmanager import FabricManager
from simnode.simulators.gpudriver import DriverFiles, Outside, PublishedGPUDriver, machine_kernel
from simnode.simulators.imex import IMEX, Software
from simnode.simulators.migcaps import MIGCaps
from simnode.simulators.nvlink import NVLink
from simnode.simulators.pcibus import PublishedPCIBus
from simnode.state import Facts, State

_NODE_ROOT = "var/lib/simnode"
_RUN = "run/simnode"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class HostError(Exception):
    """Raised when no node can be kept at this root now; one line that says why."""


class NoHostError(HostError):
    """Raised when what was given as a host's root is none, or none that a node can be kept at."""


class HostNode(Struct, frozen=True):
    """The node of the host whose root is seen at `root`."""

    root: Path

    @property
    def node_root(self) -> Path:
        """What is staged, and the records of it."""
        return self.root / _NODE_ROOT

    @property
    def run(self) -> Path:
        """The locks; on a tmpfs, and mounted into no workload."""
        return self.root / _RUN

    @property
    def lifetime_lock(self) -> Path:
        """Held by the one agent of this root."""
        return self.run / "agent.lock"

    @property
    def staging_lock(self) -> Path:
        """Held while the tree changes."""
        return self.run / "staging.lock"

    @property
    def health_socket(self) -> Path:
        """Where the probes are served besides any port."""
        return self.node_root / HEALTH_SOCKET

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Be the only one who keeps this node as long as this lasts; its directories exist meanwhile.

        Those that are empty in the end go. Raises HostError.
        """
        self.check()
        with contextlib.ExitStack() as held:
            try:
                _make(self.run)
                held.callback(_remove_empty, self.run)
                held.enter_context(for_life(self.lifetime_lock))
                _make(self.node_root)
            except LockHeldError as error:
                raise HostError(str(error)) from None
            except PermissionError as error:
                advice = f"be root, or give a --host-root that belongs to uid {os.geteuid()}"
                raise HostError(f"{told(error)}; {advice}") from None
            except OSError as error:
                raise HostError(told(error)) from None
            held.callback(_remove_empty, self.node_root)
            held.callback(_remove_empty, self.health_socket.parent)
            yield

    def check(self) -> None:
        """Raise HostError for what is no host's root, or where a link leads writing elsewhere."""
        for name in ("var/lib", "run"):
            if not (self.root / name).is_dir():
                reason = f"is no host's root, since there is no directory {self.root / name}"
                raise NoHostError(f"--host-root {self.root}: {reason}")
        if not self.node_root.resolve().is_relative_to(self.root.resolve()):
            raise NoHostError(f"{self.node_root}: leads out of {self.root}; a link on the way has to be relative")
        for directory in (self.run, self.node_root / STATE, self.health_socket.parent):
            if directory.is_symlink():
                raise HostError(f"{directory}: is a link, and must be a directory of its own; move it away")

    def exists(self) -> bool:
        """True if an agent runs here or has left anything."""
        return os.path.lexists(self.node_root) or os.path.lexists(self.run)

    def simulators(
        self,
        files: DriverFiles,
        reports: Reports,
        log: logging.Logger,
        fabricmanager_init_delay: float = 0.0,
        *,
        hook: bytes = b"",
        cdi_directories: Sequence[str] = (),
        kmsg: str = "",
        lasting: bool = False,
    ) -> tuple[Simulator, ...]:
        """Those of a host. Device nodes are made by root only; anybody else's node has none.

        `cdi_directories` are the host's, `hook` is the program that CDI specs name; `kmsg` is the kernel's own log, ""
        if that is left alone. If `lasting`, directories that containers mount outlive the agent.
        """
        host = Host(self.node_root, boot_id=_BOOT_ID.read_text().strip())
        outside = host.elsewhere(self.root, "outside")
        devices: Devices = "node" if os.geteuid() == 0 else "none"
        kernel = machine_kernel(kmsg)
        published = Outside(outside, f"/{_NODE_ROOT}/driver", lasting)
        driver = PublishedGPUDriver(host, files, devices, os.uname().machine, kernel, outside=published)
        imex = IMEX(host, devices, kernel.procfs, Software(self.node_root, reports.report, log))
        fabric_manager = FabricManager(host, reports.report, log, init_delay=fabricmanager_init_delay)
        directories = dict.fromkeys(below(self.root, directory) for directory in cdi_directories)
        runtimes = Runtimes(outside, tuple(directories), f"/{_NODE_ROOT}")
        bus = PublishedPCIBus(host, outside)
        node: tuple[TreeSimulator, ...] = (
            driver,
            fabric_manager,
            imex,
            MIGCaps(host, devices, kernel.procfs),
            NVLink(host),
            bus,
        )

        def staged(state: State, facts: Facts) -> Tree:
            return Tree(surface for simulator in node for surface in simulator.tree_for_others(state, facts))

        return (*node, CRI(host, runtimes, hook, staged))


def _make(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    if stat.S_IMODE(directory.stat().st_mode) != 0o755:
        directory.chmod(0o755)


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()
