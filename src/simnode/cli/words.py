"""The commands that bring nodes up and look at profiles: their words, as click takes them.

Those that only talk to a node (control.py) have a way of their own, since click costs them more than all they do; here
they are named for the list of commands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simnode import __version__
from simnode.cli.control import VERBS
from simnode.cli.host import agent, clean
from simnode.sandbox.standing import DEFAULT_NAME

if TYPE_CHECKING:
    from simnode.cli.run import NodeWords

F = TypeVar("F", bound=Callable[..., Any])

_DIGITS = 9
_LARGEST_PROGRAM = 64 << 20


@click.group(no_args_is_help=False)
@click.version_option(__version__, prog_name="simnode", message="%(prog)s %(version)s")
def simnode() -> None:
    """A plain Linux machine that looks like a multi-GPU NVIDIA node."""


def _count(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """The number; int() alone would take spaces, underscores and other scripts' digits too."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise click.BadParameter(f"{text!r} is no number of GPUs, such as 8.", ctx, param)
    return int(text)


def _of_a_node(command: F) -> F:
    """The options that describe a node, the same for every command that makes one."""
    options = (
        click.option(
            "--board", metavar="BOARD", help="A built-in board; `simnode profile boards` lists them. Default: h100."
        ),
        click.option("--profile", metavar="FILE", help="A profile of your own instead of a built-in board."),
        click.option("--gpus", metavar="N", callback=_count, help="How many GPUs the node has."),
        click.option("--driver-version", metavar="V", help="The driver release that the node reports."),
        click.option(
            "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a value of every GPU; repeatable."
        ),
        click.option("--nvidia-smi", metavar="PATH", help="A real nvidia-smi to install in the node instead of ours."),
    )
    for option in reversed(options):
        command = option(command)
    return command


_NAME = click.option("--name", metavar="NAME", default=DEFAULT_NAME, help=f"The node's name. Default: {DEFAULT_NAME}.")
_ROOT = click.option("--root", "as_root", is_flag=True, help="Let the command see itself as root.")
_COMMAND = click.argument("command", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)


@simnode.command(context_settings={"allow_interspersed_args": False})
@_of_a_node
@_ROOT
@_COMMAND
def run(*, as_root: bool, command: tuple[str, ...], **words: Any) -> int:
    """Bring a node up, run CMD inside it, take it down again, and exit as CMD did."""
    from simnode.cli.run import run_in_node

    return run_in_node(_node(**words), command, as_root=as_root)


@simnode.command()
@_NAME
@_of_a_node
def up(*, name: str, **words: Any) -> int:
    """Bring a node up that stays; it follows later edits of its --profile."""
    from simnode.cli.run import bring_up

    return bring_up(_node(**words), name)


@simnode.command("exec", context_settings={"allow_interspersed_args": False})
@_NAME
@_ROOT
@_COMMAND
def exec_(*, name: str, as_root: bool, command: tuple[str, ...]) -> int:
    """Run CMD in a node that stands, and exit as CMD did."""
    from simnode.cli.run import run_in_standing

    return run_in_standing(name, command, as_root=as_root)


def _node(
    *,
    board: str | None,
    profile: str | None,
    gpus: int | None,
    driver_version: str | None,
    overrides: tuple[str, ...],
    nvidia_smi: str | None,
) -> NodeWords:
    import os

    from simnode.cli.run import NodeWords

    if board is not None and profile is not None:
        raise click.UsageError("--board and --profile exclude each other: give one of them")
    program = Path(nvidia_smi).absolute() if nvidia_smi is not None else None
    if program is not None and not (program.is_file() and os.access(program, os.R_OK | os.X_OK)):
        raise click.UsageError(f"--nvidia-smi: {nvidia_smi} is not a file that can be read and executed")
    if program is not None and program.stat().st_size > _LARGEST_PROGRAM:
        raise click.UsageError(f"--nvidia-smi: {nvidia_smi} is larger than {_LARGEST_PROGRAM >> 20} MiB")
    return NodeWords(board, profile, gpus, driver_version, overrides, program)


@simnode.group(no_args_is_help=False)
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


@profile.command()
def schema() -> int:
    """Print the JSON Schema of profiles, for editors."""
    from simnode.cli.profile import show_schema

    return show_schema()


simnode.add_command(agent)
simnode.add_command(clean)
for verb in VERBS:
    simnode.add_command(click.Command(verb.name, help=verb.help))
