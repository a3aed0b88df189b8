"""The node without namespaces: the agent as a plain child, and three variables in the command's environment.

Programs that look through the loader find the library and the image; what is lost is every standard place (/dev,
/proc/driver, /usr/bin), and the guarantee that nothing outlives the node.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from simnode.sandbox.reports import Reports
from simnode.sandbox.spawn import spawn
from simnode.sandbox.surroundings import beside, inside


class PlainNode:
    """A staged node in a directory, as long as its agent runs."""

    def __init__(self, root: str, agent: Sequence[str], environ: Mapping[str, str], state: int) -> None:
        """Start `agent` and wait until it has staged `root`; raises NodeFailed."""
        self._root = root
        self._child = spawn(agent, inside(environ), state)
        self._agent = self._child.pid
        try:
            Reports(self._child.reports).staged()
        except BaseException:
            self.end()
            raise

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """`environ` with the ways to this node's library, programs and image."""
        return beside(environ, f"{self._root}/driver")

    def ended(self, pid: int) -> bool:
        """Hear that a child of the launcher has ended. What the agent staged still serves when it is gone."""
        if pid == self._agent:
            self._agent = 0
        return False

    def end(self) -> None:
        """Have the agent discard the node, and wait for it."""
        if self._agent:
            with suppress(ProcessLookupError):
                os.kill(self._agent, signal.SIGTERM)
            os.waitpid(self._agent, 0)
            self._agent = 0
        os.close(self._child.lifeline)
        os.close(self._child.reports)
