"""The command line: thin commands that turn words into calls, and every fault of the user's into one line and exit 2.

Each command imports what it needs inside its function, so that none pays for another.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from simnode import __version__

__all__ = ["main"]

USAGE_FAULT = 2


def main() -> int:
    """Run the command line of this process and return its exit code."""
    try:
        return int(simnode.main(prog_name="simnode", standalone_mode=False) or 0)
    except click.ClickException as fault:
        return complain([fault.format_message()])
    except click.Abort:
        return 130


def complain(faults: list[str]) -> int:
    """One line on standard error for each fault; returns the exit code for faults of the user's."""
    for fault in faults:
        print(f"simnode: {' '.join(fault.split())}", file=sys.stderr)
    return USAGE_FAULT


@click.group()
@click.version_option(__version__, prog_name="simnode", message="%(prog)s %(version)s")
def simnode() -> None:
    """A plain Linux machine that looks like a multi-GPU NVIDIA node."""


@simnode.command(context_settings={"allow_interspersed_args": False})
@click.option("--board", metavar="BOARD", help="A built-in board; `simnode profile boards` lists them. Default: h100.")
@click.option("--profile", metavar="FILE", help="A profile of your own instead of a built-in board.")
@click.option("--gpus", metavar="N", type=click.IntRange(min=0), help="How many GPUs the node has.")
@click.option("--driver-version", metavar="V", help="The driver release that the node reports.")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a value of every GPU; repeatable.")
@click.option("--nvidia-smi", metavar="PATH", help="A real nvidia-smi to install in the node instead of ours.")
@click.option("--root", "as_root", is_flag=True, help="Let the command see itself as root.")
@click.argument("command", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    *,
    board: str | None,
    profile: str | None,
    gpus: int | None,
    driver_version: str | None,
    overrides: tuple[str, ...],
    nvidia_smi: str | None,
    as_root: bool,
    command: tuple[str, ...],
) -> int:
    """Bring a node up, run CMD inside it, take it down again, and exit as CMD did."""
    import os

    from simnode.cli.run import run_in_node

    if board is not None and profile is not None:
        raise click.UsageError("--board and --profile exclude each other: give one of them")
    program = Path(nvidia_smi).absolute() if nvidia_smi is not None else None
    if program is not None and not (program.is_file() and os.access(program, os.X_OK)):
        raise click.UsageError(f"--nvidia-smi: {nvidia_smi} is not an executable file")
    return run_in_node(
        board=board,
        profile=profile,
        gpus=gpus,
        driver_version=driver_version,
        overrides=overrides,
        nvidia_smi=program,
        as_root=as_root,
        command=command,
    )


@simnode.group()
def profile() -> None:
    """Look at profiles, the documents that describe a node."""


@profile.command()
def boards() -> int:
    """List the built-in boards."""
    from simnode.cli.profile import list_boards

    return list_boards()


@profile.command()
@click.argument("name", metavar="[BOARD|FILE]", default="h100")
def show(name: str) -> int:
    """Print the profile of a built-in board or of a FILE, as it was written."""
    from simnode.cli.profile import show_profile

    return show_profile(name)


@profile.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
def validate(files: tuple[str, ...]) -> int:
    """Check profiles and name every fault at once, with file, key and line."""
    from simnode.cli.profile import validate_profiles

    return validate_profiles(files)
