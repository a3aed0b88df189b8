"""The commands that bring nodes up and look at profiles: their words, as click takes them.

What a node is can be said in the environment too, as SIMNODE_<OPTION>; an option beats that. Commands that only talk to
a node (control.py) have a way of their own, since click costs them more than all they do; here they are named for the
list of commands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simnode import __version__
from simnode.cli.control import VERBS
from simnode.cli.host import agent, clean, doctor
from simnode.cli.said import Mistake, count, from_environment, some
from simnode.sandbox.standing import DEFAULT_NAME

if TYPE_CHECKING:
    from simnode.cli.run import NodeWords

F = TypeVar("F", bound=Callable[..., Any])

_LARGEST_PROGRAM = 64 << 20


class _InOrderOfUse(click.Group):
    """Commands as a newcomer meets them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, as they were added."""
        return list(self.commands)


@click.group(
    cls=_InOrderOfUse,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A start: `simnode run -- nvidia-smi`. Every command has a --help of its own.",
)
@click.version_option(__version__, prog_name="simnode", message="%(prog)s %(version)s")
def simnode() -> None:
    """A plain Linux machine that looks like a multi-GPU NVIDIA node."""


def _of_a_node(command: F) -> F:
    """The options that describe a node, the same for every command that makes one."""
    options = (
        click.option(
            "--board", metavar="BOARD", envvar="SIMNODE_BOARD", show_envvar=True,
            help="A built-in board; `simnode profile boards` lists them. Default: h100.",
        ),
        click.option(
            "--profile", metavar="FILE", envvar="SIMNODE_PROFILE", show_envvar=True,
            help="A profile of your own instead of a built-in board.",
        ),
        click.option(
            "--gpus", metavar="N", callback=count, envvar="SIMNODE_GPUS", show_envvar=True,
            help="How many GPUs the node has; beats GPU_COUNT.",
        ),
        click.option(
            "--driver-version", metavar="V", envvar="SIMNODE_DRIVER_VERSION", show_envvar=True,
            help="The driver release that the node reports; beats DRIVER_VERSION.",
        ),
        click.option(
            "--set", "overrides", metavar="KEY=VALUE", multiple=True,
            help="Change a value of every GPU; repeatable. `simnode profile keys` lists them.",
        ),
        click.option(
            "--nvidia-smi", metavar="PATH", envvar="SIMNODE_NVIDIA_SMI", show_envvar=True,
            help="A real nvidia-smi to install in the node instead of ours.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


_NAME = click.option("--name", metavar="NAME", default=DEFAULT_NAME, help=f"The node's name. Default: {DEFAULT_NAME}.")
_ROOT = click.option("--root", "as_root", is_flag=True, help="Let the command see itself as root.")
_COMMAND = click.argument("command", metavar="CMD...", nargs=-1, callback=some, type=click.UNPROCESSED)


@simnode.command(context_settings={"allow_interspersed_args": False}, short_help="Run a command in a node of its own.")
@_of_a_node
@_ROOT
@_COMMAND
def run(*, as_root: bool, command: tuple[str, ...], **words: Any) -> int:
    """Bring a node up, run CMD inside it, take it down again, and exit as CMD did."""
    from simnode.cli.run import run_in_node

    return run_in_node(_node(**words), command, as_root=as_root)


@simnode.command(short_help="Bring a node up that stays.")
@_NAME
@_of_a_node
def up(*, name: str, **words: Any) -> int:
    """Bring a node up that stays; it follows later edits of its --profile."""
    from simnode.cli.run import bring_up

    return bring_up(_node(**words), name)


@simnode.command(
    "exec", context_settings={"allow_interspersed_args": False}, short_help="Run a command in a node that stands."
)
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
    from simnode.cli.run import NodeWords

    variables = from_environment(click.get_current_context())
    if board is not None and profile is not None:
        from_variable = "--board" in variables
        if from_variable == ("--profile" in variables):
            both = "environment: SIMNODE_BOARD and SIMNODE_PROFILE" if from_variable else "--board and --profile"
            raise Mistake(f"{both} exclude each other: give one of them")
        board, profile = (None, profile) if from_variable else (board, None)
    program = None if nvidia_smi is None else _program(nvidia_smi, variables.get("--nvidia-smi", "--nvidia-smi"))
    return NodeWords(board, profile, gpus, driver_version, overrides, program, variables)


def _program(path: str, said: str) -> Path:
    """A program to install; `said` is the option or variable that names it."""
    import os

    program = Path(path).absolute()
    if not (program.is_file() and os.access(program, os.R_OK | os.X_OK)):
        raise Mistake(f"{said}: {path} is not a file that can be read and executed")
    if program.stat().st_size > _LARGEST_PROGRAM:
        raise Mistake(f"{said}: {path} is larger than {_LARGEST_PROGRAM >> 20} MiB")
    return program


@click.group(cls=_InOrderOfUse)
def profile() -> None:
    """Look at profiles, the documents that describe a node."""


@profile.command()
def boards() -> int:
    """List the built-in boards."""
    from simnode.cli.profile import list_boards

    return list_boards()


@profile.command(short_help="Print the profile of a board or file.")
@click.argument("name", metavar="[BOARD|FILE]", default="h100")
def show(name: str) -> int:
    """Print the profile of a built-in board or of a FILE, as it was written."""
    from simnode.cli.profile import show_profile

    return show_profile(name)


@profile.command(short_help="Check profiles and name every fault.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
def validate(files: tuple[str, ...]) -> int:
    """Check profiles and name every fault at once, with file, key and line."""
    from simnode.cli.profile import validate_profiles

    return validate_profiles(files)


@profile.command(short_help="List the keys that can be set.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
def keys(words: tuple[str, ...]) -> int:
    """List what `set` and --set can change, with what each may be; with words, only keys that have them all."""
    from simnode.cli.profile import list_keys

    return list_keys(words)


@profile.command()
def schema() -> int:
    """Print the JSON Schema of profiles, for editors."""
    from simnode.cli.profile import show_schema

    return show_schema()


for verb in VERBS:
    simnode.add_command(click.Command(verb.name, help=verb.help))
simnode.add_command(profile)
simnode.add_command(agent)
simnode.add_command(clean)
simnode.add_command(doctor)
