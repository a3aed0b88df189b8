"""A responder for probes and scrapes: HTTP/1.1, GET and HEAD of a fixed set of pages, one request a connection.

It exists because an idle agent must stay small: prometheus-client costs 130 ms and 5.5 MiB at import, h11 25 ms and a
loop around it, for four pages without parameters. Whatever else a client wants is refused: bodies, other methods, heads
beyond 8 KiB. Pages are made in the event loop, so they must neither wait nor read files. Nobody can hold it up: a head
has its time and a reply has its time, and when too many are connected whoever has waited longest goes, so that a crowd
of silent connections cannot keep a probe out. It wakes up for nothing while nobody is connected.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

from simnode.refusals import told

_LONGEST_HEAD = 8 * 1024
_BACKLOG = 128
_TEXT = "text/plain; charset=utf-8"
_METHODS = ("GET", "HEAD")


class AddressError(ValueError):
    """Raised for an address that cannot be listened at; one line that says why."""


class Page(NamedTuple):
    """What one path answers."""

    status: HTTPStatus
    content_type: str
    body: bytes


class Responder:
    """Answers each path with what its maker makes at that moment; times in seconds.

    `head_time`: from connecting to the end of the request's head; `reply_time`: for the client to take the reply.
    """

    def __init__(
        self,
        pages: Mapping[str, Callable[[], Page]],
        *,
        head_time: float = 5.0,
        reply_time: float = 10.0,
        most_connections: int = 64,
    ) -> None:
        self._pages = pages
        self._head_time = head_time
        self._reply_time = reply_time
        self._most = most_connections
        self._connections: dict[_Connection, None] = {}
        self._servers: list[asyncio.Server] = []

    async def listen(self, address: str) -> str:
        """Listen at "HOST:PORT", ":PORT" (every interface) or "[IPV6]:PORT"; returns the address that it became.

        Port 0 takes a free one. Raises AddressError.
        """
        host, port = split(address)
        try:
            server = await self._bind(host, port)
        except (OSError, UnicodeError) as error:
            reason = told(error) if isinstance(error, OSError) else str(error)
            raise AddressError(f"cannot listen at {address}: {reason}") from None
        self._servers.append(server)
        return f"{address.rpartition(':')[0]}:{server.sockets[0].getsockname()[1]}"

    async def listen_on(self, listening: socket.socket) -> None:
        """Listen on a socket of any family that is bound already; it is closed with the responder."""
        server = await asyncio.get_running_loop().create_server(self._connection, sock=listening, backlog=_BACKLOG)
        self._servers.append(server)

    async def close(self) -> None:
        """Listen no longer and drop whoever is still connected."""
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.drop()
        for server in self._servers:
            await server.wait_closed()

    async def _bind(self, host: str, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        if host:
            return await loop.create_server(self._connection, host, port, backlog=_BACKLOG)
        # One socket for both families: two could not share a port that the kernel chooses.
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        listening = socket.create_server(("", port), family=family, dualstack_ipv6=both, backlog=_BACKLOG)
        return await loop.create_server(self._connection, sock=listening, backlog=_BACKLOG)

    def _connection(self) -> _Connection:
        return _Connection(self._answer, self._connections, self._most, self._head_time, self._reply_time)

    def _answer(self, head: bytes) -> bytes:
        """The whole reply to a head (without its final empty line)."""
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _refusal(HTTPStatus.BAD_REQUEST)
        method, target, _ = words
        if method not in _METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"Allow: {', '.join(_METHODS)}\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if fields.get("content-length", "0") != "0" or "transfer-encoding" in fields:
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        page = self._page(target.partition("?")[0])
        return _reply(page, with_body=method == "GET")

    def _page(self, path: str) -> Page:
        maker = self._pages.get(path)
        if maker is None:
            known = " ".join(sorted(self._pages))
            return Page(HTTPStatus.NOT_FOUND, _TEXT, f"no such page; there are {known}\n".encode())
        try:
            return maker()
        except Exception as error:
            text = f"this page cannot be made: {type(error).__name__}: {error}\n"
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, text.encode())


class _Connection(asyncio.Protocol):
    """One client: reads a head, writes a reply, closes. In `crowd` as long as it lives, the oldest first."""

    def __init__(
        self,
        answer: Callable[[bytes], bytes],
        crowd: dict[_Connection, None],
        most: int,
        head_time: float,
        reply_time: float,
    ) -> None:
        self._answer = answer
        self._crowd = crowd
        self._most = most
        self._head_time = head_time
        self._reply_time = reply_time
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._head = b""
        self._answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._crowd) >= self._most:
            next(iter(self._crowd)).drop()
        self._crowd[self] = None
        self._transport = cast(asyncio.Transport, transport)
        self._allow(self._head_time)

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return
        self._head += data
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if len(head) > _LONGEST_HEAD:
            self._reply(_refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        elif end:
            self._reply(self._answer(head))

    def eof_received(self) -> bool:
        return self._answered

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._forget()

    def drop(self) -> None:
        """End it now, whatever is still to be sent."""
        self._forget()
        if self._transport is not None:
            self._transport.abort()

    def _reply(self, reply: bytes) -> None:
        self._answered = True
        self._head = b""
        if self._transport is not None:
            self._allow(self._reply_time)
            self._transport.write(reply)
            self._transport.close()

    def _allow(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.drop)

    def _forget(self) -> None:
        self._crowd.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()


def split(address: str) -> tuple[str, int]:
    """Host ("" for every interface) and port of an address; raises AddressError."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit() and int(port) <= 0xFFFF) or (":" in host and not bracketed):
        raise AddressError(f"{address!r} is no address: want HOST:PORT, :PORT or [IPV6]:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _refusal(status: HTTPStatus, fields: str = "") -> bytes:
    """A reply that says no more than its status."""
    return _reply(Page(status, _TEXT, f"{status.phrase}\n".encode()), with_body=True, fields=fields)


def _reply(page: Page, *, with_body: bool, fields: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\nContent-Length: {len(page.body)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n{fields}\r\n"
    )
    return head.encode("latin-1") + (page.body if with_body else b"")
