"""What init and the agent tell the launcher, a line each, until the node stands."""

from __future__ import annotations

import os

from simnode.sandbox.complaints import complain


class NamespacesRefused(Exception):
    """Raised when the kernel refuses a step of the node's making; the message names step and error."""


class NodeFailed(Exception):
    """Raised when the node does not come to stand though nothing was refused; the message is for the user."""


class Reports:
    """The lines on one descriptor."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._text = b""
        self._lost: list[str] = []

    def init_pid(self) -> int:
        """Wait for init's pid; raises NamespacesRefused, NodeFailed."""
        return int(self._await("init"))

    def staged(self) -> None:
        """Wait until the node is staged, and say what it stands without; raises NamespacesRefused, NodeFailed."""
        self._await("staged")
        if self._lost:
            complain(f"no node in {', '.join(self._lost)}: who reads there sees this machine")

    def staying(self) -> None:
        """Wait until init no longer ends with the launcher; raises NodeFailed."""
        self._await("staying")

    def _await(self, wanted: str) -> str:
        while True:
            word, _, rest = self._line().partition(" ")
            if word == wanted:
                return rest
            if word == "lost":
                place, _, reason = rest.partition(": ")
                self._lost.append(f"{place} ({reason})")
            if word == "refused":
                raise NamespacesRefused(rest)
            if word == "failed":
                raise NodeFailed(rest)

    def _line(self) -> str:
        while b"\n" not in self._text:
            more = os.read(self._file, 4096)
            if not more:
                raise NodeFailed("the node ended before it stood")
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        return line.decode(errors="replace")
