"""`simnode run`: from the words of the command line to the launcher's order."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from simnode.cli import complain
from simnode.profile import Options, ProfileError, compile_state, load_board, load_file
from simnode.sandbox.installed import NotInstalled, agent_command, init_program
from simnode.sandbox.launcher import Order, run

_DEFAULT_BOARD = "h100"
_FIRST_GENERATION = 1


def run_in_node(
    *,
    board: str | None,
    profile: str | None,
    gpus: int | None,
    driver_version: str | None,
    overrides: tuple[str, ...],
    nvidia_smi: Path | None,
    as_root: bool,
    command: tuple[str, ...],
) -> int:
    """Compile the node first, so that a bad document starts nothing; then launch."""
    options = Options(gpus=gpus, driver_version=driver_version, overrides=overrides)
    try:
        document = load_file(Path(profile)) if profile is not None else load_board(board or _DEFAULT_BOARD)
        state = compile_state(document, options, os.environ, generation=_FIRST_GENERATION)
        init = init_program()
    except ProfileError as error:
        return complain([str(fault) for fault in error.faults])
    except NotInstalled as error:
        complain([str(error)])
        return 1
    order = Order(
        state=msgspec.msgpack.encode(state),
        agent=agent_command(nvidia_smi),
        init=init,
        command=command,
        as_root=as_root,
    )
    return run(order, os.environ)
