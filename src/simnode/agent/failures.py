"""What went wrong in a wave, attributed: which simulator, doing what, at which surface.

A wave tries everything and collects; so a failure is a value here, and becomes an exception only where the agent ends.
"""

from __future__ import annotations

import msgspec

from simnode.host import ConvergeError


class Failure(msgspec.Struct, frozen=True, order=True):
    """One thing that one simulator (or the source) did not get done.

    `surface` is a path relative to the node root, "" where no single surface is to blame.
    """

    simulator: str
    action: str
    surface: str
    message: str

    def __str__(self) -> str:
        where = f"{self.surface}: " if self.surface else ""
        return f"{self.simulator}: {self.action}: {where}{self.message}"


Failures = tuple[Failure, ...]


class OverdueError(Exception):
    """Raised by a seat: its simulator did not return before the deadline and is busy until it does."""


class ShutdownError(Exception):
    """Raised by `Agent.run` when something could not be withdrawn or taken away; `failures` says what."""

    def __init__(self, failures: Failures) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures


def attribute(simulator: str, action: str, error: BaseException) -> Failures:
    """The failures that `error` stands for: one a surface for a converge, one a member for a group, else one."""
    if isinstance(error, ConvergeError):
        return tuple(Failure(simulator, action, each.path, one_line(each.message)) for each in error.errors)
    if isinstance(error, BaseExceptionGroup):
        return tuple(failure for each in error.exceptions for failure in attribute(simulator, action, each))
    return (Failure(simulator, action, "", one_line(str(error)) or type(error).__name__),)


def one_line(text: str) -> str:
    """`text` with every run of white space, line ends included, made one space."""
    return " ".join(text.split())
