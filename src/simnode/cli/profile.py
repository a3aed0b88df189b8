"""`simnode profile`: what is built in, what a profile says, and what is wrong with one."""

from __future__ import annotations

import os
from pathlib import Path

from simnode.cli import FAILED, complain
from simnode.profile import Options, ProfileError, boards, compile_state, load_board, load_file
from simnode.profile.compile import lacking
from simnode.profile.faults import quoted
from simnode.profile.inert import DEVICE_KEYS, NODE_KEYS, PROFILE_KEYS, inert, note, without_effect
from simnode.profile.keys import described, dotted
from simnode.profile.schema import DEVICE_DEFAULTS, NODE_SECTIONS
from simnode.profile.shapes import did_you_mean
from simnode.profile.software import of_another_driver
from simnode.sandbox.complaints import printable


def list_boards() -> int:
    """The names of the built-in boards, one a line."""
    for board in boards():
        print(board)
    return 0


def show_profile(name: str) -> int:
    """The document of a board or, if there is no such board, of a file."""
    known = boards()
    if name not in known and not os.path.lexists(name):
        hint = did_you_mean(name, known) or f"; the boards are {', '.join(known)}"
        return complain([f"{quoted(name)} is neither a built-in board nor a file{hint}"])
    try:
        document = load_board(name) if name in known else load_file(Path(name))
    except ProfileError as error:
        return complain([str(fault) for fault in error.faults])
    print(document.text, end="")
    return 0


def validate_profiles(files: tuple[str, ...]) -> int:
    """Every fault of every file; exit 2 if there is any. What is likely not meant is noted, and is no fault."""
    code = 0
    for file in files:
        try:
            document = load_file(Path(file), lacking(Options(), {}))
            state = compile_state(document, Options(), {}, generation=1)
        except ProfileError as error:
            code = complain([str(fault) for fault in error.faults])
        else:
            print(f"{printable(file)}: valid", flush=True)
            remark(file, note(without_effect(document.root, PROFILE_KEYS)))
            remark(file, of_another_driver(document.root, state.software.driver_version))
    return code


def list_keys(words: tuple[str, ...]) -> int:
    """A line for each key that a running node can be told, and what it may be; only those that have all `words`."""
    listed = [
        (place, key, f"{described(key, shape)}{'; no effect yet' if inert(key, without) else ''}")
        for place, table, without in (("gpu", DEVICE_DEFAULTS, DEVICE_KEYS), ("node", NODE_SECTIONS, NODE_KEYS))
        for key, shape in dotted(table)
        if all(word.casefold() in key.casefold() for word in words)
    ]
    if not listed:
        complain([f"no key has {' and '.join(map(quoted, words))} in it"])
        return FAILED
    width = max(len(key) for _, key, _ in listed)
    for place, key, form in listed:
        print(f"{place:<4}  {key:<{width}}  {form}")
    return 0


def remark(place: str, said: str) -> None:
    """The line that says what is likely not meant, if there is any; `place` is the file or option that has it."""
    if said:
        complain([f"note: {place}: {said}"])


def show_schema() -> int:
    """The JSON Schema of a profile."""
    import json

    from simnode.profile.jsonschema import profile_schema

    print(json.dumps(profile_schema(), indent=2))
    return 0
