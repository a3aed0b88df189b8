"""Where profiles come from: the built-in boards and the user's files, read and checked before anybody sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from simnode.profile.consistency import check_consistency
from simnode.profile.devices import check_documented
from simnode.profile.document import Document, Node, parse
from simnode.profile.faults import Fault, ProfileError, in_order, quoted, without_unknown
from simnode.profile.keys import placed
from simnode.profile.reading import read
from simnode.profile.schema import PROFILE
from simnode.profile.shapes import check, did_you_mean

Lacks: TypeAlias = Callable[[Node], list[Fault]]
"""What a document lacks for a State, found in its tree, which may be wrong in other places."""

_BOARDS = Path(__file__).parent / "boards"


def boards() -> tuple[str, ...]:
    """The names of the built-in boards."""
    return tuple(sorted(path.stem for path in _BOARDS.glob("*.yaml")))


def load_board(name: str) -> Document:
    """The profile of a built-in board. Raises ProfileError, which blames `--board`."""
    known = boards()
    if name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise ProfileError((Fault("--board", "", None, f"{quoted(name)} is no known board{hint}"),))
    return load_text((_BOARDS / f"{name}.yaml").read_bytes(), f"{name}.yaml")


def load_file(path: str | Path, lacks: Lacks | None = None) -> Document:
    """The profile in a file. Raises ProfileError with every fault of the document."""
    return load_text(read(str(path)), str(path), lacks=lacks)


def load_text(raw: bytes, file: str, unknown: list[Fault] | None = None, lacks: Lacks | None = None) -> Document:
    """The profile in `raw`; `file` is the name that faults give it. Raises ProfileError.

    Unknown keys are faults too, unless `unknown` is there to take them. `lacks` finds what compiling would miss, so
    that it is told beside what is wrong; of a document that is right nobody asks it.
    """
    faults: list[Fault] = []
    root = parse(raw, file, faults)
    if root is not None:
        check(root, PROFILE, "", faults)
        check_consistency(root, faults)
        check_documented(root, faults)
    faults = without_unknown(placed(faults, PROFILE), unknown)
    if faults or root is None:
        if lacks is not None and root is not None and isinstance(root.value, dict):
            faults.extend(_untold(lacks(root), faults))
        raise ProfileError(in_order(faults))
    return Document(file, root, raw)


def _untold(missing: list[Fault], told: list[Fault]) -> list[Fault]:
    """Those of `missing` for which no other fault is the reason: one of the same key, or of what that lies in."""
    keys = {fault.key for fault in told}
    return [fault for fault in missing if not any(f"{fault.key}.".startswith(f"{key}.") for key in keys)]
