"""Where a function of the library gets its answer, and which test says most about it: read from the sources."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from simnode.nvml.cells import BY_KEY, CELLS
from simnode.nvml.exports import DEVICE_FIRST, EXPORTS, SETTERS

_EXPORT = re.compile(r"^NVML_EXPORT [\w ]+?\**(nvml\w+)\(", re.MULTILINE)
# A function with its body: what begins a line and ends with a brace that does.
_DEFINITION = re.compile(r"^\w[^;{}#/]*?(\w+)\([^;{}]*?\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"(?:sn_device, |AT\(|device->)(\w+)")
_KEY = re.compile(r"[a-z][a-z_0-9]*(?:\.[a-z_0-9]+)*")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_ORDER = re.compile(r"\bsn_(?:may_order|order_\w+)\(")
_VERSION = re.compile(r"(?:_v\d|V|Ext)$")
_SHARED = ("conftest", "nodes")
_MEMBERS = {cell.member: cell.key for cell in CELLS}


class Sources:
    """The definitions in the folder of the library, and the cells that they read or set."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, str] = {}
        self._cells: dict[str, list[str]] = defaultdict(list)
        self._keys: dict[str, list[str]] = {}
        self._ordering: set[str] = set()
        self._getters = {name for cell in CELLS for name in cell.getters}
        for cell in CELLS:
            for name in (*cell.getters, *cell.functions):
                self._cells[name].append(cell.key)
        for path in sorted(folder.glob("*.c")):
            text = path.read_text()
            bodies: dict[str, str] = dict(_DEFINITION.findall(text))
            for name in _EXPORT.findall(text):
                read = _MEMBER.findall(bodies.get(name, ""))
                whole = _whole(name, bodies)
                if _ORDER.search(whole):
                    self._ordering.add(name)
                texts = " ".join(_TEXT.findall(whole))
                self._files[name] = path.name
                self._cells[name] += [_MEMBERS[member] for member in read if member in _MEMBERS]
                self._keys[name] = [key for key in _KEY.findall(texts) if key in BY_KEY]

    def has(self, name: str) -> bool:
        """True if a file of the library or the table of cells defines the function."""
        return name in self._files or name in self._getters

    def orders(self, name: str) -> bool:
        """True if the function has the node's agent change something."""
        return name in self._ordering

    def cells(self, name: str) -> list[str]:
        """The cells that feed it, or another version of it if none is known for itself."""
        if not self.has(name):
            return []
        if not self._cells.get(name):
            stem = _VERSION.sub("", name)
            name = next((one for one in EXPORTS if _VERSION.sub("", one) == stem and self._cells.get(one)), name)
        return self._cells.get(name, [])

    def sets(self, name: str, room: int) -> str:
        """The cells that it changes in `room` characters, or the file that has the rule."""
        keys = self._keys.get(name, [])
        return f"{'sets ' if keys else ''}{self._text(name, keys, room)}"

    def reads(self, name: str, room: int) -> str:
        """The cells that feed it in `room` characters, or the file that has the rule."""
        return self._text(name, self.cells(name), room)

    def _text(self, name: str, keys: list[str], room: int) -> str:
        groups = [f"`{group}`" for group in _grouped(list(dict.fromkeys(keys)))]
        shown = list(groups)
        while len(", ".join(shown)) > room and len(shown) > 1:
            shown = [*shown[: -2 if shown[-1] == "…" else -1], "…"]
        return ", ".join(shown) or f"`{self._files.get(name, '')}`"


def _whole(name: str, bodies: Mapping[str, str]) -> str:
    """The body of a function and of all that it uses in its file."""
    reached, waiting = dict[str, str](), [name]
    while waiting:
        one = waiting.pop()
        if one in bodies and one not in reached:
            reached[one] = bodies[one]
            waiting += re.findall(r"\w+", bodies[one])
    return "\n".join(reached.values())


def _grouped(keys: list[str]) -> Iterator[str]:
    """Three or more keys of one subject as what they have in common, with a star."""
    subjects: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        subjects[key.partition(".")[0]].append(key)
    for together in subjects.values():
        if len(together) < 3:
            yield from together
        else:
            yield f"{_beginning(together)}*"


def _beginning(keys: list[str]) -> str:
    """What all begin with."""
    first, last = min(keys), max(keys)
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))


def _words(path: Path) -> Counter[str]:
    return Counter(re.findall(r"\w+", path.read_text()))


class Tests:
    """The words of all tests, with those of the programs beside them that they run."""

    def __init__(self, folder: Path) -> None:
        self._words: dict[str, Counter[str]] = {}
        for path in sorted(folder.glob("*/test_*.py")):
            words = _words(path)
            beside = set(path.parent.glob("*.py")) - set(path.parent.glob("test_*.py"))
            helpers = [one for one in beside if one.stem in words and one.stem not in _SHARED]
            file = str(path.relative_to(folder).with_suffix(""))
            self._words[file] = sum(map(_words, helpers), words)
        self._getters = {name for cell in CELLS for name in cell.getters}

    def of(self, name: str) -> str:
        """The test that names the function most often, in the library's own folder if any there does."""
        named = {file: words[name] + self._short(words, name) for file, words in self._words.items()}
        best = max(named, key=lambda file: (named[file] > 0, file.startswith("nvml_library/"), named[file], file))
        return best if named[best] else f"({self._generic(name)})"

    @staticmethod
    def _short(words: Counter[str], name: str) -> int:
        """How often tables of names without their beginning have it."""
        long = name.removeprefix("nvmlDevice")
        return words[long] if long != name and words["nvmlDevice"] and words["f"] else 0

    def _generic(self, name: str) -> str:
        if name in self._getters:
            return "nvml_library/test_cells"
        if name in SETTERS:
            return "nvml_library/test_setters"
        return "nvml_library/test_handles" if name in DEVICE_FIRST else "nvml_library/test_exports"
