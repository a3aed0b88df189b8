"""The nodes that stay, by name: each has a file, locked by its init for life, that says where the node is.

An unlocked file is stale: whoever meets it removes it. A file is never used again for another node, so that who holds
one open knows whose it is. Clients that only talk to a node import this module; it must cost them next to nothing, and
therefore does without pathlib, dataclasses and typing.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from simnode.control_client import SOCKET
from simnode.sandbox.places import check_private, place, runtime_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_NAME = "default"
_LONGEST_NAME = 64
_ORDINARY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_STAGED = "staged"
_PATIENCE = 1.0
_END = 30.0
_POLL = 0.005
_END_OF_LOG, _LINES_OF_LOG = 4096, 5
_LARGEST_NUMBER = 1 << 53
_START_TIME = 19  # of /proc/PID/stat, counted from the field after the program's name (proc(5): number 22)


class StandingError(Exception):
    """Raised for what cannot be done with a standing node; one line that says why."""


class BadName(StandingError):
    """Raised for a name that no node can have."""


class NameTaken(StandingError):
    """Raised when a node of this name stands already."""


class NoSuchNode(StandingError):
    """Raised when no node of this name stands."""


class Unreachable(StandingError):
    """Raised when the process that should be a node's init is not to be seen, or is another one."""


class Node:
    """A node that stands, or is coming up. `file`: its file, open; `since`: seconds of the wall clock."""

    def __init__(self, name: str, path: str, file: int) -> None:
        self.name = name
        self.path = path
        self.file = file
        entry, self.staged = _read(file)
        self.init = _number(entry, "init")
        self.start = _number(entry, "start")
        self.with_pids = bool(entry.get("with_pids", True))
        self.root = str(entry.get("root", ""))
        self.board = str(entry.get("board", ""))
        self.since = float(_number(entry, "since"))

    def process(self) -> int:
        """A descriptor of init's directory in /proc, which leads to no other process ever. Raises Unreachable."""
        found = _process(self.init)
        try:
            if found >= 0 and start_time(found) == self.start:
                return found
        except OSError:
            pass
        if found >= 0:
            os.close(found)
        raise Unreachable(f"node {self.name} cannot be reached: it has ended, or this is another pid namespace")

    def control(self) -> str:
        """The path of its control socket, seen from here. Raises Unreachable."""
        return f"/proc/self/fd/{self.process()}/root{self.root}/{SOCKET}"

    def description(self) -> dict[str, object]:
        """What is known of it without asking its agent; `log`: the end of what its agent has complained of."""
        return {"name": self.name, "board": self.board, "init": self.init, "since": self.since, "log": self._log()}

    def _log(self) -> list[str]:
        try:
            process = self.process()
        except Unreachable:
            return []
        try:
            log = os.open("fd/2", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
        except OSError:
            return []
        finally:
            os.close(process)
        size = os.fstat(log).st_size
        text = os.pread(log, _END_OF_LOG, max(0, size - _END_OF_LOG)).decode(errors="replace")
        os.close(log)
        return text.splitlines()[-_LINES_OF_LOG:]

    def lost(self) -> bool:
        """True once init has ended; the kernel closes its files before it kills what lived in the node."""
        return _lock(self.file, fcntl.LOCK_SH)

    def end(self) -> None:
        """Take it down with everything in it, and return once it is gone. Raises Unreachable, StandingError."""
        process = self.process()
        try:
            handle = os.pidfd_open(self.init)
            try:
                start_time(process)  # still the same one, so the handle is its
                signal.pidfd_send_signal(handle, signal.SIGKILL if self.with_pids else signal.SIGTERM)
                if not _readable(handle, _END):
                    raise StandingError(f"node {self.name}: its init {self.init} does not end")
            finally:
                os.close(handle)
        except (ProcessLookupError, FileNotFoundError):
            pass
        finally:
            os.close(process)
        self.forget()

    def forget(self) -> None:
        """Remove its file. Only for a node that is gone."""
        if _names(self.path, self.file):
            _remove(self.path)


class Claim:
    """A name that is ours, as long as anybody holds `file`."""

    def __init__(self, path: str, file: int) -> None:
        self.path = path
        self.file = file

    def record(self, init: int, *, with_pids: bool, root: str, board: str) -> None:
        """Write down where the node is. Raises Unreachable if init is gone already."""
        process = _process(init)
        if process < 0:
            raise Unreachable(f"init {init} has ended")
        try:
            start = start_time(process)
        finally:
            os.close(process)
        entry = {"init": init, "start": start, "with_pids": with_pids, "root": root, "board": board}
        os.write(self.file, json.dumps({**entry, "since": time.time()}).encode() + b"\n")

    def staged(self) -> None:
        """Write down that the node stands."""
        os.write(self.file, f"{_STAGED}\n".encode())

    def give_up(self) -> None:
        """There will be no node: let the next one have the name."""
        if _names(self.path, self.file):
            _remove(self.path)
        os.close(self.file)


def check_name(name: str) -> str:
    """`name`, if a node can have it; raises BadName."""
    if not 0 < len(name) <= _LONGEST_NAME or not _ORDINARY.issuperset(name) or name[0] in ".-":
        raise BadName(
            f"{json.dumps(name)} is no name for a node: want 1 to {_LONGEST_NAME} letters, digits, dots, dashes or "
            "underscores, the first one neither dot nor dash"
        )
    return name


def claim(environ: Mapping[str, str], name: str) -> Claim:
    """The name for a new node, its file locked. Raises BadName, NameTaken, UnsafeDirectory, OSError."""
    uid = os.geteuid()
    above = place(environ, uid)
    path = f"{above}/{check_name(name)}"
    until = time.monotonic() + _PATIENCE
    while True:
        with suppress(FileExistsError):
            os.mkdir(above, 0o700)  # noqa: PTH102
        try:
            check_private(above, uid)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # whoever had the last node here removed the directory
            continue
        except FileExistsError:
            there = _look(above, name)
            if there is not None and (_alive(there) or time.monotonic() >= until):
                raise NameTaken(f"a node {name} stands already: take it down first, or give another --name") from None
            if there is not None:
                os.close(there.file)
                time.sleep(_POLL)
            continue
        if _lock(file, fcntl.LOCK_EX) and _names(path, file):
            return Claim(path, file)
        os.close(file)


def find(environ: Mapping[str, str], name: str) -> Node:
    """The node of this name. Raises BadName, NoSuchNode, UnsafeDirectory.

    Root finds its own nodes and, if it was given another user's runtime directory, those of that user. Then it becomes
    that user: in a node's user namespace root would be nobody.
    """
    check_name(name)
    for above in _places(environ):
        node = _look(above, name)
        if node is not None:
            return node
    raise NoSuchNode(f"no node {name} stands: `simnode ls` lists those that do, `simnode up` brings one up")


def every(environ: Mapping[str, str]) -> Iterator[Node]:
    """All nodes by name; root's own first. Be done with one before you ask for the next: root may become another."""
    for above in _places(environ):
        for name in _names_in(above):
            with suppress(BadName, NoSuchNode):
                node = _look(above, check_name(name))
                if node is not None:
                    yield node


def _names_in(directory: str) -> list[str]:
    """What lies there, sorted; nothing once somebody has removed it with its last node."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208
    except FileNotFoundError:
        return []


def start_time(process: int) -> int:
    """When the process started whose directory in /proc `process` is: clock ticks since boot. OSError: it is gone."""
    file = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
    try:
        line = os.read(file, 4096)
    finally:
        os.close(file)
    return int(line[line.rindex(b")") + 2 :].split()[_START_TIME])


def here(environ: Mapping[str, str]) -> str | None:
    """The control socket of the node that this process lives in, None if it lives in none."""
    above, config, rest = environ.get("SIMNODE_IMAGE", "").rpartition("/driver/config")
    if config and not rest and os.path.isdir(f"{above}/control"):  # noqa: PTH112
        return f"{above}/{SOCKET}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:  # noqa: PTH123
        for line in mounts:
            point = line.split(" ", 5)[4]
            if point.endswith("/simnode") and line.partition(" - ")[2].startswith("tmpfs simnode "):
                return f"{point}/{SOCKET}"
    return None


def _places(environ: Mapping[str, str]) -> Iterator[str]:
    uid = os.geteuid()
    mine = place(environ, uid)
    if _exists(mine, uid):
        yield mine
    runtime = runtime_directory(environ) if uid == 0 else None
    if runtime is not None and runtime[1].st_uid != uid:
        from simnode.sandbox.namespaces import become_user

        become_user(runtime[1].st_uid, runtime[1].st_gid)
        theirs = place(environ, os.geteuid())
        if _exists(theirs, os.geteuid()):
            yield theirs


def _exists(directory: str, uid: int) -> bool:
    try:
        check_private(directory, uid)
    except FileNotFoundError:
        return False
    return True


def _look(above: str, name: str) -> Node | None:
    """The node whose file this is; None if there is none or it was stale, and then it is gone."""
    path = f"{above}/{name}"
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoSuchNode(f"{path} is no node's file: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NoSuchNode(f"{path} is no node's file")
    if _lock(file, fcntl.LOCK_EX):
        if _names(path, file):
            _remove(path)
        os.close(file)
        return None
    return Node(name, path, file)


def _remove(path: str) -> None:
    """Remove a node's file, and with the last one their directory."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    with suppress(OSError):
        os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120


def _read(file: int) -> tuple[dict[str, Any], bool]:
    """The last entry, since an init that was refused something has another one follow it; and whether it is staged."""
    entry: dict[str, Any] = {}
    staged = False
    for line in os.pread(file, 1 << 16, 0).decode(errors="replace").splitlines():
        if line == _STAGED:
            staged = True
        else:
            with suppress(ValueError):
                told = json.loads(line)
                entry = told if isinstance(told, dict) else entry
    return entry, staged


def _number(entry: Mapping[str, Any], key: str) -> Any:
    """A number of an entry; 0, which is nothing's, if somebody has written something else there."""
    number = entry.get(key)
    return number if isinstance(number, int | float) and 0 <= number < _LARGEST_NUMBER else 0


def _alive(node: Node) -> bool:
    try:
        os.close(node.process())
    except Unreachable:
        return False
    return True


def _process(pid: int) -> int:
    """A descriptor of the directory in /proc, -1 if there is none."""
    try:
        return os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1


def _readable(file: int, seconds: float) -> bool:
    watch = select.poll()
    watch.register(file, select.POLLIN)
    return bool(watch.poll(seconds * 1000))


def _lock(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _names(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False
