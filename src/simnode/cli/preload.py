"""Getting rid of an inherited LD_PRELOAD, whose libraries would lie to the agent about the host.

Shims of a simulated node rewrite paths for every program of their environment, and this interpreter uses libc like any
other. They are loaded before anything of ours runs, so the only way out is to start again.
"""

from __future__ import annotations

import os
import sys

import click

_VARIABLES = ("LD_PRELOAD", "LD_AUDIT")
_SHED = "SIMNODE_PRELOAD_SHED"


def shed() -> None:
    """Return if nothing is preloaded; else this process becomes the same program without. Call it before all else.

    Raises click.ClickException if something puts it back each time.
    """
    if not any(os.environ.get(name) for name in _VARIABLES):
        return
    if _SHED in os.environ:
        raise click.ClickException(
            f"{sys.executable} starts with {' or '.join(_VARIABLES)} set, whatever is done about it; start it without"
        )
    environ = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ | {_SHED: "1"})
