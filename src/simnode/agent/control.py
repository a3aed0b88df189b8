"""The control socket: where a person's command changes a running node, or asks what it is.

A Unix stream socket in a directory of its own that only the agent's user can enter and no workload is given; the peer's
uid is checked besides, by the kernel's word. One JSON object a line in, one out (docs/overrides.md). A change is
answered once it is valid, stored and published: whoever set a value reads it back. What is wrong with one is told in a
line for each reason. When too many are connected, whoever has been silent longest goes: a crowd keeps no command out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from simnode.agent.orders import Managed, Orders, answered
from simnode.control_client import REFUSED
from simnode.sources.file import FileSource

_CREDENTIALS = struct.Struct("3i")  # struct ucred (linux/socket.h): pid, uid, gid
_LONGEST = 1 << 20
_BACKLOG = 64
_MOST_CONNECTIONS = 256


class ControlSocket:
    """Serves on `path` for peers of `uid`, by default the agent's own."""

    def __init__(self, path: Path, source: FileSource, agent: Managed, *, uid: int | None = None) -> None:
        self._path = path
        self._uid = os.geteuid() if uid is None else uid
        self._orders = Orders(source, agent)
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent: dict[asyncio.Task[None], None] = {}

    async def serve(self) -> None:
        """Answer until cancelled. Raises OSError if the socket cannot be made."""
        with listening(self._path, self._uid) as listener:
            server = await asyncio.start_unix_server(self._accepted, sock=listener, limit=_LONGEST, backlog=_BACKLOG)
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
                tasks = tuple(self._tasks)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        if len(self._tasks) > _MOST_CONNECTIONS and self._silent:
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.cancel()
        try:
            await self._converse(reader, writer, task)
        except (OSError, asyncio.CancelledError):  # the peer is gone, or has to go: nobody to tell
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            self._silent.pop(task, None)
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        uid = _peer(writer)
        while True:
            self._silent[task] = None
            try:
                line = await reader.readline()
            except ValueError:
                await _send(writer, _refusal(f"a request has {_LONGEST} bytes at the most"))
                return
            if not line.endswith(b"\n"):
                return
            if uid != self._uid:
                await _send(writer, _refusal(f"uid {uid} may not control this node: it belongs to uid {self._uid}"))
                return
            self._silent.pop(task, None)
            answer = await answered(self._orders, line)
            self._silent[task] = None
            await _send(writer, answer)


@contextlib.contextmanager
def listening(path: Path, uid: int) -> Iterator[socket.socket]:
    """A listening socket at `path`, however long that is, in a directory of mode 0700.

    What a killed agent left there is replaced. Raises OSError, too where the directory is not one of `uid`'s own.
    """
    above = _opened(path.parent, uid)
    try:
        _make_private(above, path.parent, uid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as listener:
            _bind(listener, path, above)
            try:
                listener.listen(_BACKLOG)
                yield listener
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(path.name, dir_fd=above)
    finally:
        os.close(above)


def _opened(directory: Path, uid: int) -> int:
    """A descriptor of the directory, made if it is not there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{directory} must be a directory of uid {uid}, and no link to one") from None


def _make_private(above: int, directory: Path, uid: int) -> None:
    found = os.fstat(above)
    if found.st_uid != uid:
        raise PermissionError(f"{directory} must be a directory of uid {uid}")
    if stat.S_IMODE(found.st_mode) != 0o700:
        os.fchmod(above, 0o700)


def _bind(listener: socket.socket, path: Path, above: int) -> None:
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=above)
        listener.bind(f"/proc/self/fd/{above}/{path.name}")
    except OSError as error:
        raise OSError(error.errno, f"cannot be made: {error.strerror}", str(path)) from None


def _peer(writer: asyncio.StreamWriter) -> int:
    connection: socket.socket = writer.get_extra_info("socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])


async def _send(writer: asyncio.StreamWriter, answer: dict[str, object]) -> None:
    writer.write(msgspec.json.encode(answer) + b"\n")
    await writer.drain()


def _refusal(reason: str) -> dict[str, object]:
    return {"ok": False, "code": REFUSED, "faults": [reason]}
