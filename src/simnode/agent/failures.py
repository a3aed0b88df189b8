"""What went wrong in a wave, attributed: which simulator, doing what, at which surface.

A wave tries everything and collects; so a failure is a value here, and becomes an exception only where the agent ends.
"""

from __future__ import annotations

import msgspec

from simnode.host import ConvergeError, TreeError
from simnode.refusals import told


class Failure(msgspec.Struct, frozen=True, order=True):
    """One thing that one simulator (or the source) did not get done.

    `surface` is a path relative to the node root, "" where no single surface is to blame.
    """

    simulator: str
    action: str
    surface: str
    message: str

    def __str__(self) -> str:
        return f"{self.simulator}: {self.text}"

    @property
    def text(self) -> str:
        """All but whose it is, on one line."""
        where = f"{self.surface}: " if self.surface else ""
        return f"{self.action}: {where}{self.message}"

    def extra(self) -> dict[str, str]:
        """What a structured log says beside the text."""
        return {"simulator": self.simulator, "surface": self.surface}


Failures = tuple[Failure, ...]


class OverdueError(Exception):
    """Raised by a seat: its simulator did not return before the deadline and is busy until it does."""


class ShutdownError(Exception):
    """Raised by `Agent.run` when something could not be withdrawn or taken away; `failures` says what."""

    def __init__(self, failures: Failures) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures


def attribute(simulator: str, action: str, error: BaseException) -> Failures:
    """The failures that `error` stands for: one a surface for a converge, one a member for a group, else one.

    An OSError of a relative path is about that surface, a TreeError may be about another simulator's tree.
    """
    if isinstance(error, ConvergeError):
        return tuple(Failure(simulator, action, each.path, one_line(each.message)) for each in error.errors)
    if isinstance(error, BaseExceptionGroup):
        return tuple(failure for each in error.exceptions for failure in attribute(simulator, action, each))
    if isinstance(error, OSError) and isinstance(error.filename, str) and not error.filename.startswith("/"):
        return (Failure(simulator, action, error.filename, one_line(error.strerror or str(error))),)
    if isinstance(error, TreeError) and error.owner:
        simulator = error.owner
    text = told(error) if isinstance(error, OSError) else str(error)
    return (Failure(simulator, action, "", one_line(text) or type(error).__name__),)


def by_simulator(failures: Failures) -> dict[str, str]:
    """The simulators' names, sorted, and what each did not get done, on one line."""
    texts: dict[str, list[str]] = {}
    for failure in sorted(failures):
        texts.setdefault(failure.simulator, []).append(failure.text)
    return {name: "; ".join(lines) for name, lines in texts.items()}


def failed(action: str, failures: Failures) -> str:
    """Who failed at `action`, in words: "stage failed: gpudriver, nvlink"."""
    return f"{action} failed: {', '.join(by_simulator(failures))}"


def one_line(text: str) -> str:
    """`text` with every run of white space, line ends included, made one space."""
    return " ".join(text.split())
