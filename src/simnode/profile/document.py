"""A YAML 1.2 document as a tree of values that know where they stand.

Written over the parser's events, not over a YAML library's constructors: those read `0000:07:00.0` as 420 and `010` as
8 (YAML 1.1), let a duplicate key win, expand aliases without end and lose the lines. Refused here: what is not UTF-8,
duplicate keys, keys that are not scalars, tags other than the core schema's, more than one document, and documents
that are too deep or, aliases expanded, too large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, TypeAlias

import yaml
from msgspec import Struct, field

from simnode.profile.faults import Fault, ProfileError, in_order, quoted

MAX_DEPTH = 32
MAX_NODES = 100_000
MAX_NUMBER = 40  # characters of a number: far more than any key needs, and int() stays cheap

Content: TypeAlias = "bool | int | float | str | tuple[Node, ...] | dict[str, Node] | None"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {f"{sign}.{word}": float(sign + "inf") for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")} | {
    word: float("nan") for word in (".nan", ".NaN", ".NAN")
}


class Node(NamedTuple):
    """One value of a document. `text` is a scalar's source; `line` counts from 1 and is the key's in a mapping."""

    value: Content
    file: str
    line: int | None = None
    text: str = ""
    override: bool = False


class Document(Struct, frozen=True):
    """A document that was read: its tree, and the bytes it was read from."""

    file: str
    root: Node
    raw: bytes = b""

    @property
    def text(self) -> str:
        """The document as it was written: YAML, comments included."""
        return self.raw.decode("utf-8").removeprefix("\ufeff")


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar in YAML 1.2's core schema. Raises ValueError for a number of absurd length."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in "+-.0123456789":
        return text
    if text in _SPECIAL:
        return _SPECIAL[text]
    if _INT.fullmatch(text):
        return int(_bounded(text))
    if _BASED.fullmatch(text):
        return int(_bounded(text), 0)
    if _FLOAT.fullmatch(text):
        return float(_bounded(text))
    return text


def parse(raw: bytes, file: str, faults: list[Fault]) -> Node | None:
    """The tree of the one document in `raw`; what is wrong with it goes to `faults`. None if there is no tree."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.append(Fault(file, "", line, f"is not UTF-8: byte 0x{raw[error.start]:02x}; save it as UTF-8"))
        return None
    builder = _Builder(file, faults)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        faults.append(Fault(file, "", mark.line + 1 if mark else None, f"is not YAML: {_problem(error, text)}"))
        return None
    except yaml.YAMLError as error:
        reason = str(getattr(error, "reason", "")) or "it cannot be read"
        position = getattr(error, "position", 0)
        line = text.encode().count(b"\n", 0, position) + 1
        faults.append(Fault(file, "", line, f"is not YAML: {reason}"))
        return None
    except ProfileError as error:
        faults.extend(error.faults)
        return None
    if builder.root is None:
        faults.append(Fault(file, "", None, "is empty"))
    return builder.root


def load(raw: bytes, file: str) -> Document:
    """The document in `raw`, not yet checked against the schema. Raises ProfileError."""
    faults: list[Fault] = []
    root = parse(raw, file, faults)
    if faults or root is None:
        raise ProfileError(in_order(faults))
    return Document(file, root, raw)


def plain(node: Node) -> object:
    """The value without places: dicts, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(child) for child in node.value]
    return node.value


def find(node: Node | None, key: str) -> Node | None:
    """The value at a dotted key, or None where there is none or it is null."""
    for part in key.split("."):
        if node is None or not isinstance(node.value, dict):
            return None
        node = node.value.get(part)
    return None if node is None or node.value is None else node


def items(node: Node | None) -> tuple[Node, ...]:
    """The entries of a list; none where it is missing or something else."""
    return node.value if node is not None and isinstance(node.value, tuple) else ()


def fields(node: Node | None) -> dict[str, Node]:
    """The entries of a mapping; none where it is missing or something else."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def _problem(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and text.splitlines()[mark.line : mark.line + 1]:
        line = text.splitlines()[mark.line]
        if line[mark.column : mark.column + 1] == "\t":
            return "a tab cannot indent; use spaces"
    return ", ".join(part for part in (error.context, error.problem) if part)


def _bounded(text: str) -> str:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"number of {len(text)} characters")
    return text


def _events(text: str) -> Iterator[yaml.Event]:
    loader = _LOADER(text)
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()


class _Frame(Struct):
    """A collection that is still open; `size` counts its nodes and `height` its levels, aliases expanded."""

    line: int
    anchor: str | None
    mapping: dict[str, Node] | None
    entries: list[Node] = field(default_factory=list)
    key: str | None = None
    key_line: int = 0
    repeated: bool = False
    size: int = 1
    height: int = 1


class _Builder:
    """Takes events in order and grows the tree; no recursion, so depth costs a fault and not the stack."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
        self.root: Node | None = None
        self._file = file
        self._faults = faults
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            self._count(line, 1)
            self._add(self._scalar(event, line), 1, 0, event.anchor)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, "map", _Frame(line, event.anchor, {}))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, "seq", _Frame(line, event.anchor, None))
        elif isinstance(event, yaml.CollectionEndEvent):
            frame = self._stack.pop()
            value: Content = tuple(frame.entries) if frame.mapping is None else frame.mapping
            self._add(Node(value, self._file, frame.line), frame.size, frame.height, frame.anchor)
        elif isinstance(event, yaml.AliasEvent):
            known = self._anchors.get(event.anchor or "")
            if known is None:
                self._stop(line, f"alias {quoted(event.anchor or '')} refers to nothing before it")
            self._count(line, known[1])
            self._add(known[0]._replace(line=line), known[1], known[2], None)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self._stop(line, "holds more than one document")

    def _open(self, event: yaml.CollectionStartEvent, kind: str, frame: _Frame) -> None:
        if event.tag not in (None, "!", _CORE + kind):
            self._stop(frame.line, f"tag {quoted(event.tag or '')} is not one of YAML 1.2's core schema")
        self._count(frame.line, 1)
        self._stack.append(frame)
        self._bound_depth(frame.line, 0)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Node:
        text = event.value
        if event.tag in ("!", _CORE + "str") or (event.tag is None and not event.implicit[0]):
            return Node(text, self._file, line, text)
        try:
            value = resolve(text)
        except ValueError as error:
            self._fault(line, f"{error}")
            value = 0
        if event.tag is not None:
            kinds = {"null": type(None), "bool": bool, "int": int, "float": float}
            kind = kinds.get(event.tag.removeprefix(_CORE))
            if kind is None or not isinstance(value, kind):
                self._stop(line, f"tag {quoted(event.tag)} does not fit {quoted(text)}")
        return Node(value, self._file, line, text)

    def _count(self, line: int, size: int) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            self._stop(line, f"holds more than {MAX_NODES} values, aliases expanded")

    def _add(self, node: Node, size: int, height: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, size, height)
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        frame.size += size
        frame.height = max(frame.height, height + 1)
        self._bound_depth(node.line, height)
        if frame.mapping is None:
            frame.entries.append(node)
        elif frame.key is None:
            self._name(frame, node)
        else:
            if not frame.repeated:
                frame.mapping[frame.key] = node._replace(line=frame.key_line)
            frame.key = None

    def _name(self, frame: _Frame, node: Node) -> None:
        if isinstance(node.value, (dict, tuple)):
            self._stop(node.line, "a key must be a word, not a collection")
        frame.key, frame.key_line, frame.repeated = node.text, node.line or 0, node.text in (frame.mapping or ())
        if frame.repeated:
            first = (frame.mapping or {})[node.text].line
            self._fault(frame.key_line, f"is given twice; the first is on line {first}")

    def _bound_depth(self, line: int | None, height: int) -> None:
        if len(self._stack) + height > MAX_DEPTH:
            self._stop(line, f"is nested more than {MAX_DEPTH} deep")

    def _path(self) -> str:
        path = ""
        for frame in self._stack:
            if frame.mapping is None:
                path += f"[{len(frame.entries)}]"
            elif frame.key is not None:
                path += f".{frame.key}" if path else frame.key
        return path

    def _fault(self, line: int | None, message: str) -> None:
        self._faults.append(Fault(self._file, self._path(), line, message))

    def _stop(self, line: int | None, message: str) -> NoReturn:
        raise ProfileError((Fault(self._file, self._path(), line, message),))
