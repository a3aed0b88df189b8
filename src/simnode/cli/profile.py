"""`simnode profile`: what is built in, what a profile says, and what is wrong with one."""

from __future__ import annotations

import os
from pathlib import Path

from simnode.cli import complain
from simnode.profile import Options, ProfileError, boards, compile_state, load_board, load_file
from simnode.sandbox.complaints import printable


def list_boards() -> int:
    """The names of the built-in boards, one a line."""
    for board in boards():
        print(board)
    return 0


def show_profile(name: str) -> int:
    """The document of a board or, if there is no such board, of a file."""
    try:
        document = load_board(name) if name in boards() or not os.path.lexists(name) else load_file(Path(name))
    except ProfileError as error:
        return complain([str(fault) for fault in error.faults])
    print(document.text, end="")
    return 0


def validate_profiles(files: tuple[str, ...]) -> int:
    """Every fault of every file; exit 2 if there is any."""
    code = 0
    for file in files:
        try:
            compile_state(load_file(Path(file)), Options(), {}, generation=1)
        except ProfileError as error:
            code = complain([str(fault) for fault in error.faults])
        else:
            print(f"{printable(file)}: valid")
    return code


def show_schema() -> int:
    """The JSON Schema of a profile."""
    import json

    from simnode.profile.jsonschema import profile_schema

    print(json.dumps(profile_schema(), indent=2))
    return 0
