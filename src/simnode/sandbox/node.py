"""The local node in namespaces: its start, the way into it, and its end."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping, Sequence

from simnode.sandbox.machine import Machine
from simnode.sandbox.namespaces import Namespaces
from simnode.sandbox.reports import NamespacesRefused, Reports
from simnode.sandbox.spawn import spawn

_NO_FRESH_PROC = "mount of proc "


def node_root(machine: Machine) -> str:
    """Where the node root lies, in the node: beside the library, where `libnvidia-ml.so.1` looks for its image."""
    return f"{machine.library_directory}/simnode"


def start(init: str, machine: Machine, agent: Sequence[str], environ: Mapping[str, str], state: int) -> LocalNode:
    """Start init, which starts `agent`, and wait until the node is staged; raises NamespacesRefused, NodeFailed.

    Where a fresh /proc is refused (a container that masks parts of its own) there is no pid namespace either.
    """
    options = [] if machine.privileged else ["--user"]
    words = [machine.library_directory, machine.program_directory, *agent]
    try:
        return LocalNode([init, *options, *words], environ, state, with_pids=True)
    except NamespacesRefused as refusal:
        if not str(refusal).startswith(_NO_FRESH_PROC):
            raise
    return LocalNode([init, *options, "--no-pid", *words], environ, state, with_pids=False)


class LocalNode:
    """A staged node. The launcher stays outside until `join`, so that it can still do without namespaces.

    With a pid namespace the program that is spawned only makes the namespaces, and leaves the launcher a child in them;
    that child is init, and SIGKILL for it ends all. Without one, init itself kills what is left once the lifeline hangs up.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], state: int, *, with_pids: bool) -> None:
        child = spawn(command, environ, state)
        self._with_pids = with_pids
        self._reports = child.reports
        self._lifeline = child.lifeline
        self._init = 0
        reports = Reports(child.reports)
        try:
            try:
                self._init = reports.init_pid()
            finally:
                if with_pids or self._init == 0:
                    os.waitpid(child.pid, 0)
            reports.staged()
        except BaseException:
            self.end()
            raise

    def join(self) -> None:
        """Enter the node's namespaces: the next child of this process runs in the node. Raises NamespacesRefused."""
        try:
            Namespaces(self._init).join()
        except OSError as error:
            raise NamespacesRefused(str(error)) from error

    def ended(self, pid: int) -> bool:
        """Hear that a child of the launcher has ended and was waited for; true if that was the node."""
        if pid != self._init:
            return False
        self._init = 0
        return True

    def gone(self) -> bool:
        """True once init has ended: the kernel closes its files before it kills what lived in the node."""
        watch = select.poll()
        watch.register(self._reports, select.POLLHUP)
        return any(events & select.POLLHUP for _, events in watch.poll(0))

    def end(self) -> None:
        """Take the node down, with every process in it, and wait until that is so."""
        if self._init and self._with_pids:
            os.kill(self._init, signal.SIGKILL)
        os.close(self._lifeline)
        if self._init:
            os.waitpid(self._init, 0)
            self._init = 0
        os.close(self._reports)
