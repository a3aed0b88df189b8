"""`simnode run`, `simnode up`, `simnode exec`: from the words of the command line to the launcher's orders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from simnode.cli import FAILED, complain
from simnode.cli.profile import remark
from simnode.profile import Options, ProfileError, compile_state, load_board, load_file
from simnode.profile.compile import lacking
from simnode.profile.faults import Fault, UnknownKey
from simnode.profile.inert import DEVICE_KEYS, note, without_effect
from simnode.profile.keys import wrong_key
from simnode.profile.overrides import assignments
from simnode.profile.schema import NODE_SECTIONS
from simnode.profile.software import of_another_driver
from simnode.sandbox.caller import UnfitCaller, check_caller
from simnode.sandbox.enter import enter
from simnode.sandbox.handover import Handover
from simnode.sandbox.installed import NotInstalled, agent_command, init_program
from simnode.sandbox.launcher import NodeOrder, Order, run
from simnode.sandbox.places import UnsafeDirectory
from simnode.sandbox.standing import BadName, StandingError
from simnode.sandbox.up import up

_DEFAULT_BOARD = "h100"
_FIRST_GENERATION = 1


class NodeWords(Struct, frozen=True):
    """What the command line says of a node, and the environment; `variables` are those options that the latter said."""

    board: str | None
    profile: str | None
    gpus: int | None
    driver_version: str | None
    overrides: tuple[str, ...]
    nvidia_smi: Path | None
    variables: Mapping[str, str]

    @property
    def kind(self) -> str:
        """What lists call such a node."""
        if self.profile is not None:
            return self.profile
        return _DEFAULT_BOARD if self.board is None else self.board


def run_in_node(node: NodeWords, command: tuple[str, ...], *, as_root: bool) -> int:
    """Compile the node first, so that a bad document starts nothing; then launch."""
    order = _ordered(node, follow=False)
    if isinstance(order, int):
        return order
    return run(Order(order.state, order.agent, order.init, command, as_root), os.environ)


def bring_up(node: NodeWords, name: str) -> int:
    """A node that stays, and follows its profile if that is a file."""
    order = _ordered(node, follow=True)
    return order if isinstance(order, int) else up(order, name, node.kind, os.environ)


def run_in_standing(name: str, command: tuple[str, ...], *, as_root: bool) -> int:
    """A command in a node that stands."""
    try:
        return enter(name, command, os.environ, as_root=as_root)
    except BadName as error:
        return complain([str(error)])
    except (StandingError, UnsafeDirectory) as error:
        complain([str(error)])
        return FAILED


def _ordered(node: NodeWords, *, follow: bool) -> NodeOrder | int:
    """The order, or the exit code after everything that is wrong has been said."""
    try:
        check_caller()
    except UnfitCaller as unfit:
        complain([str(unfit)])
        return FAILED
    options = Options(gpus=node.gpus, driver_version=node.driver_version, overrides=node.overrides)
    try:
        if node.profile is not None:
            document = load_file(Path(node.profile), lacking(options, os.environ))
        else:
            document = load_board(node.kind)
        state = compile_state(document, options, os.environ, generation=_FIRST_GENERATION)
        init, agent = init_program(), agent_command(node.nvidia_smi)
    except ProfileError as error:
        return complain([str(_as_said(fault, node)) for fault in error.faults])
    except NotInstalled as error:
        complain([str(error)])
        return FAILED
    remark("--set", note(without_effect(assignments(node.overrides), DEVICE_KEYS)))
    remark(node.kind, of_another_driver(document.root, state.software.driver_version))
    followed = os.path.abspath(node.profile) if follow and node.profile is not None else ""  # noqa: PTH100 (keeps links)
    return NodeOrder(Handover(state, options, document.raw, followed).encoded(), agent, init)


def _as_said(fault: Fault, node: NodeWords) -> Fault:
    """`fault` with the name that the user wrote: of a variable, where that said what the option says."""
    if (
        isinstance(fault, UnknownKey)
        and fault.file == "--set"
        and not wrong_key(fault.key, NODE_SECTIONS, advise=False)
    ):
        message = "is the node's own value, and --set changes GPUs: see the other options, or write it into a profile"
        return replace(fault, message=message)
    return replace(fault, file=node.variables.get(fault.file, fault.file))
