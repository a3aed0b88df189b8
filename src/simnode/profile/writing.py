"""A tree of values as YAML 1.2, in block style, so that a person can read and edit what a program wrote; and its file.

Reading it again gives the same values: text that would be read as something else is quoted, in JSON's form, which is
YAML's as well. Comments and places are not kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from simnode.profile.document import Node, resolve

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/+]*(?:[ .-][A-Za-z0-9_/+]+)*")
_INDENT = "  "


def written(node: Node) -> bytes:
    """The document whose root is `node`."""
    return "".join(f"{line}\n" for line in _lines(node, "")).encode()


def create(path: Path, flags: int, mode: int) -> int:
    """A descriptor of the file at `path`, made if it is not there, and the directories above it too."""
    flags |= os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, mode)


def replace_file(path: Path, raw: bytes, mode: int) -> None:
    """Let `path` hold `raw`, all of it at once; one writer at a time.

    The temporary file beside it always has the same name, so that killed writers leave one at the most, and a suffix
    that nobody loads. What is in its place and no file is an error, and not waited for.
    """
    temporary = _temporary(path)
    descriptor = create(temporary, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK, mode)
    try:
        try:
            os.fchmod(descriptor, mode)
            view = memoryview(raw)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        temporary.rename(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error.filename, str):
            error.filename = str(path)
        raise


def has_left(path: Path) -> bool:
    """True if somebody is writing `path`, or was killed in doing so."""
    temporary = _temporary(path)
    return temporary.is_file() and not temporary.is_symlink()


def sweep(path: Path) -> None:
    """Remove what a killed writer of `path` has left beside it; nobody may be writing."""
    with contextlib.suppress(OSError):
        if has_left(path):
            _temporary(path).unlink()


def _temporary(path: Path) -> Path:
    return Path(f"{path}.tmp")


def _lines(node: Node, indent: str) -> Iterator[str]:
    value = node.value
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _entry(f"{indent}{_text(key)}:", child, indent)
    elif isinstance(value, tuple) and value:
        for child in value:
            yield from _entry(f"{indent}-", child, indent)
    else:
        yield f"{indent}{_scalar(node)}"


def _entry(head: str, child: Node, indent: str) -> Iterator[str]:
    if isinstance(child.value, (dict, tuple)) and child.value:
        yield head
        yield from _lines(child, indent + _INDENT)
    else:
        yield f"{head} {_scalar(child)}"


def _scalar(node: Node) -> str:
    value = node.value
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, tuple):
        return "[]"
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return node.text or repr(value).replace("inf", ".inf")


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and resolve(text) == text else json.dumps(text, ensure_ascii=False)
