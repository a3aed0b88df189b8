"""The command line: thin commands that turn words into calls, and every fault of the user's into one line and exit 2.

Each command imports what it needs inside its function, so that none pays for another; those that only talk to a node
do not even pay for the parser of the others.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]

USAGE_FAULT = 2
FAILED = 1


def main() -> int:
    """Run the command line of this process and return its exit code.

    An interrupt or a closed pipe ends it silently, as it ends other programs.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from simnode.cli.control import talk, talks

    try:
        return talk(sys.argv[1:]) if talks(sys.argv[1:]) else _parsed()
    except OSError as error:
        from simnode.refusals import told

        complain([told(error)])
        return FAILED


def complain(faults: list[str]) -> int:
    """One line on standard error for each fault; returns the exit code for faults of the user's."""
    from simnode.sandbox.complaints import complain as say

    for fault in faults:
        say(" ".join(fault.split()))
    return USAGE_FAULT


def _parsed() -> int:
    import click

    from simnode.cli.said import Mistake
    from simnode.cli.words import simnode
    from simnode.sandbox.complaints import write_error

    try:
        return int(simnode.main(prog_name="simnode", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as bare:
        write_error(f"{bare.ctx.get_help() if bare.ctx else bare.message}\n")
        return USAGE_FAULT
    except Mistake as fault:
        return complain([fault.format_message()])
    except click.UsageError as fault:
        said = fault.format_message()
        if fault.ctx is not None and not said.endswith("?"):
            said = f"{said.rstrip('.')}; `{fault.ctx.command_path} --help` tells more"
        return complain([said])
    except click.ClickException as fault:
        return complain([fault.format_message()])
