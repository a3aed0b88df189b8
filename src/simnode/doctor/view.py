"""A node as the doctor sees it: where its "/" is, and where consumers look there for each thing.

Paths are the node's own. A host's root may be seen elsewhere, so links are followed below it, never out of it; only
reading is possible. What programs and the agent answer is asked for once, by whoever needs it first.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from simnode.doctor.answers import NVML, Agent, ask_agent, ask_nvml, run

Kind = Literal["host", "local", "plain"]

CDI = ("/etc/cdi", "/var/run/cdi")
NODE_ROOT = "/var/lib/simnode"
NVML_NAME = "libnvidia-ml.so.1"
_LINKS = 40
_LARGEST, _LONGEST = 64 << 20, 4 << 20  # bytes of a program, of a text
_MINOR = re.compile(r"^Device Minor:[ \t]*([0-9]{1,9})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """Where a path leads, all links followed; `status` is what is there, or `fault` says why there is nothing."""

    path: str
    status: os.stat_result | None
    fault: str = ""


@dataclass(frozen=True)
class View:
    """The node whose "/" is seen at `root` ("" for our own).

    `kind`: a host's node, a local node in its namespaces, or a local node in a directory, beside the standard places.
    `foreign`: what shows a real NVIDIA driver on the host, "" if nothing does.
    """

    root: str
    kind: Kind
    node_root: str
    libraries: str
    programs: str
    dev: str
    proc: str
    sys: str
    cdi: tuple[str, ...] = ()
    foreign: str = ""
    _directories: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @property
    def driver(self) -> str:
        """The driver root."""
        return f"{self.node_root}/driver"

    @property
    def driver_proc(self) -> str:
        """What is /proc/driver to consumers."""
        return "/proc/driver" if self.kind == "local" else f"{self.driver}/proc/driver"

    @cached_property
    def nvml(self) -> NVML:
        """What the library answers to a program of its own."""
        if self.kind == "local":
            return ask_nvml(NVML_NAME, {})
        return ask_nvml(self.seen(f"{self.libraries}/{NVML_NAME}"), {"SIMNODE_DEVICES": "all"})

    @cached_property
    def agent(self) -> Agent | None:
        """What the agent answers; None if it would not answer us, for it is another user's."""
        owner = self.owner
        if owner is None or os.geteuid() not in (0, owner):
            return None
        return ask_agent(self.seen(self.node_root), owner)

    @cached_property
    def owner(self) -> int | None:
        """The user who keeps the node, None if there is none."""
        status = self.reach(self.node_root).status
        return None if status is None else status.st_uid

    @cached_property
    def has_devices(self) -> bool:
        """False where there are no device nodes by design: only root can make them on a host."""
        return self.kind == "local" or (self.kind == "host" and self.owner == 0)

    @cached_property
    def gpus(self) -> dict[str, int]:
        """The minors of the GPUs that the kernel lists, by PCI address; one that cannot be read is -1."""
        above = f"{self.driver_proc}/nvidia/gpus"
        found = {}
        for address in self.names(above):
            minor = _MINOR.search(self.text(f"{above}/{address}/information") or "")
            found[address] = int(minor[1]) if minor else -1
        return found

    @cached_property
    def majors(self) -> dict[str, int]:
        """The character majors of /proc/devices by their drivers' names."""
        characters = (self.text(f"{self.proc}/devices") or "").partition("Block devices:")[0]
        pairs = (line.split() for line in characters.splitlines())
        return {pair[1]: int(pair[0]) for pair in pairs if len(pair) == 2 and _is_number(pair[0])}

    def reach(self, path: str) -> Place:
        """Where `path` leads. If nothing is there, the first part of the way that is missing."""
        left = path.split("/")[::-1]
        done: list[str] = []
        links = 0
        while left:
            name = left.pop()
            if name in ("", "."):
                continue
            if name == "..":
                del done[-1:]
                continue
            here = "/".join(("", *done, name))
            if here in self._directories:
                done.append(name)
                continue
            try:
                status = os.lstat(self.root + here)
                target = os.readlink(self.root + here) if stat.S_ISLNK(status.st_mode) else None  # noqa: PTH115
            except (OSError, ValueError) as error:
                return Place(here, None, _fault(error))
            if target is None:
                done.append(name)
                if stat.S_ISDIR(status.st_mode):
                    self._directories.add(here)
                continue
            links += 1
            if links > _LINKS:
                return Place(here, None, "is one of a circle of links")
            done = [] if target.startswith("/") else done
            left += target.split("/")[::-1]
        there = "/".join(("", *done))
        try:
            return Place(there, os.stat(self.root + there or "/"))  # noqa: PTH116
        except OSError as error:
            return Place(there, None, _fault(error))

    def seen(self, path: str) -> str:
        """The path by which we reach what `path` leads to."""
        return self.root + self.reach(path).path or "/"

    def exists(self, path: str) -> bool:
        """True if `path` leads to anything."""
        return self.reach(path).status is not None

    def names(self, path: str) -> list[str]:
        """What is in a directory, sorted; nothing if there is none."""
        try:
            return sorted(os.listdir(self.seen(path)))  # noqa: PTH208
        except OSError:
            return []

    def content(self, path: str, most: int = -1) -> bytes | None:
        """A file's bytes, the first `most` of them if that is not negative.

        None if there is no regular file that we can read, or one of more than 64 MiB.
        """
        place = self.reach(path)
        if place.status is None or not stat.S_ISREG(place.status.st_mode):
            return None
        try:
            with open(self.root + place.path, "rb") as file:  # noqa: PTH123
                content = file.read(_LARGEST + 1 if most < 0 else most)
        except OSError:
            return None
        return content if len(content) <= _LARGEST else None

    def text(self, path: str) -> str | None:
        """The same as a text; None, too, for one of more than 4 MiB."""
        content = self.content(path, _LONGEST + 1)
        return None if content is None or len(content) > _LONGEST else content.decode(errors="replace")

    def closed(self, path: str) -> str:
        """Why not every user's programs can read what `path` leads to, "" if they can or nothing is there."""
        status = self.reach(path).status
        mode = 0o444 if status is None else stat.S_IMODE(status.st_mode)
        return "" if mode & 0o004 else f"has mode {mode:04o}"

    def run(self, program: str, *words: str) -> tuple[int, str]:
        """A program of the node with its driver's libraries: how it ended (negative: a signal), and what it said."""
        beside = {"LD_LIBRARY_PATH": self.seen(self.libraries), "SIMNODE_DEVICES": "all"}
        return run([self.seen(program), *words], {} if self.kind == "local" else beside)


def of_host(root: str, cdi: tuple[str, ...] = CDI, foreign: str = "") -> View:
    """The node of the host whose root is seen at `root`; runtimes look for specs in `cdi`."""
    return _elsewhere(root.rstrip("/"), "host", NODE_ROOT, cdi, foreign)


def beside(node_root: str) -> View:
    """A local node where namespaces are refused: all of it is in one directory."""
    return _elsewhere("", "plain", node_root, (), "")


def of_local(node_root: str) -> View:
    """The local node that this process is in; its root lies in the loader's library directory."""
    above = os.path.dirname(node_root)  # noqa: PTH120
    return View("", "local", node_root, above, "/usr/bin", "/dev", "/proc", "/sys")


def _elsewhere(root: str, kind: Kind, node_root: str, cdi: tuple[str, ...], foreign: str) -> View:
    driver = f"{node_root}/driver"
    places = (f"{driver}/usr/lib64", f"{driver}/usr/bin", f"{driver}/dev", f"{node_root}/proc", f"{node_root}/sys")
    return View(root, kind, node_root, *places, cdi, foreign)


def _is_number(word: str) -> bool:
    """True for decimal digits, and no more of them than a device's number may have."""
    return word.isascii() and word.isdigit() and len(word) < 10


def _fault(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "is no path that a system has"
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    return "is missing" if missing else f"cannot be looked at: {error.strerror}"
