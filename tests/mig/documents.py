"""Profiles with a `mig:` section, as short as they can be written."""

from __future__ import annotations

from simnode.profile import Options, compile_state, load_board, load_text
from simnode.profile.document import Document
from simnode.state import State


def document(board: str, section: str) -> Document:
    """The built-in board with that section, in flow style."""
    return load_text(load_board(board).raw + f"mig: {section}\n".encode(), "p.yaml")


def compiled(board: str, section: str, *overrides: str, gpus: int | None = 2, driver: str | None = None) -> State:
    """What it compiles to."""
    return compile_state(document(board, section), Options(gpus, driver, overrides), {})


def one_gpu(board: str, instances: str) -> State:
    """A node of one GPU that is partitioned like that."""
    return compiled(board, f"{{gpus: [{{gpu_instances: [{instances}]}}]}}", gpus=1)


def named(*profiles: str) -> str:
    """GPU instances of these profiles."""
    return ", ".join(f"{{profile: {profile}}}" for profile in profiles)
