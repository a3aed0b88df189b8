"""The local node in namespaces: its start, the way into it, and its end."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from simnode.sandbox.descendants import adopt, kill_descendants
from simnode.sandbox.machine import Machine
from simnode.sandbox.namespaces import Namespaces
from simnode.sandbox.reports import NamespacesRefused, NodeFailed, Reports
from simnode.sandbox.spawn import Lasting, spawn

Begun = Callable[[int, bool], None]
"""Hears init's pid, and whether the node has a pid namespace."""

_NO_FRESH_PROC = "mount of proc "


def node_root(machine: Machine) -> str:
    """Where the node root lies, in the node: beside the library, where `libnvidia-ml.so.1` looks for its image."""
    return f"{machine.library_directory}/simnode"


def start(
    init: str,
    machine: Machine,
    agent: Sequence[str],
    environ: Mapping[str, str],
    state: int,
    *,
    lasting: Lasting | None = None,
    begun: Begun = lambda pid, with_pids: None,  # noqa: ARG005
) -> LocalNode:
    """Start init, which starts `agent`, and wait until the node is staged; raises NamespacesRefused, NodeFailed.

    Where a fresh /proc is refused (a container that masks parts of its own) there is no pid namespace either. `begun`
    hears of each init as soon as its pid is known.
    """
    options = [] if machine.privileged else ["--user"]
    words = [machine.library_directory, machine.program_directory, *agent]
    try:
        return LocalNode([init, *options, *words], environ, state, lasting, begun, with_pids=True)
    except NamespacesRefused as refusal:
        if not str(refusal).startswith(_NO_FRESH_PROC):
            raise
    return LocalNode([init, *options, "--no-pid", *words], environ, state, lasting, begun, with_pids=False)


class LocalNode:
    """A staged node. The launcher stays outside until `join`, so that it can still do without namespaces.

    With a pid namespace the program that is spawned only makes the namespaces, and leaves the launcher a child in them;
    that child is init, and SIGKILL for it ends all. Without one, init itself kills what is left once the lifeline hangs
    up.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        state: int,
        lasting: Lasting | None,
        begun: Begun,
        *,
        with_pids: bool,
    ) -> None:
        child = spawn(command, environ, state, lasting)
        self._with_pids = with_pids
        self._reports = child.reports
        self._lifeline = child.lifeline
        self._init = 0
        self._adopting = False
        self._lines = Reports(child.reports)
        try:
            try:
                self._init = self._lines.init_pid()
            finally:
                if with_pids or self._init == 0:
                    os.waitpid(child.pid, 0)
            begun(self._init, with_pids)
            self._lines.staged()
        except BaseException:
            self.end()
            raise

    def join(self) -> None:
        """Enter the node's namespaces: the next child of this process runs in the node. Raises NamespacesRefused."""
        try:
            Namespaces(Path(f"/proc/{self._init}")).join()
        except OSError as error:
            raise NamespacesRefused(str(error)) from error
        if not self._with_pids:
            adopt()
            self._adopting = True

    def leave(self) -> None:
        """Let the node outlive this process, and return once it will. Raises NodeFailed if it is gone by then."""
        try:
            os.write(self._lifeline, b".")
        except BrokenPipeError:
            raise NodeFailed("the node ended as soon as it was staged") from None
        self._lines.staying()

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
        """Take the node down, with every process in it, and wait until that is so.

        init is not gone before every process of its pid namespace is reaped, children of the launcher's among them.
        Without one, what the command left is killed here, also in mounts of its own and if init was killed; init then
        kills what shares the node's mounts.
        """
        if self._adopting:
            kill_descendants(self.ended, spared=self._init)
        if self._init and self._with_pids:
            os.kill(self._init, signal.SIGKILL)
        os.close(self._lifeline)
        while self._init:
            self.ended(os.waitpid(-1, 0)[0])
        os.close(self._reports)
