"""`simnode exec`: a command in a node that stands, as a job of the caller's shell.

What it leaves behind belongs to the node and lives as long as that.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from simnode.sandbox.command import (
    Command,
    Terminal,
    attend,
    exit_code,
    open_standard_descriptors,
    working_directory,
)
from simnode.sandbox.complaints import complain
from simnode.sandbox.namespaces import Namespaces, become_root
from simnode.sandbox.standing import StandingError, find
from simnode.sandbox.surroundings import inside


def enter(name: str, words: tuple[str, ...], environ: Mapping[str, str], *, as_root: bool) -> int:
    """Run the command in the node `name` and return its exit code as a shell would.

    Raises StandingError, UnsafeDirectory if there is no such node that can be entered.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    open_standard_descriptors()
    terminal = Terminal()
    node = find(environ, name)
    process = node.process()
    if not node.staged:
        raise StandingError(f"node {name} is still coming up")
    command = Command(words, inside(environ), working_directory())
    try:
        Namespaces(Path(f"/proc/self/fd/{process}")).join()
    except OSError as error:
        raise StandingError(f"node {name} cannot be entered: {error}") from error
    os.close(process)
    nested = as_root and os.geteuid() != 0
    try:
        status = attend(command.fork(become_root if nested else lambda: None), terminal, lambda _: False)
    except OSError as error:
        raise StandingError(f"node {name} has ended: {error}") from error
    finally:
        terminal.take_back()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and node.lost():
        complain("the node ended before the command did")
    return exit_code(status)
