"""The responder as its clients meet it, well-meaning and other ones, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from simnode.agent.responder import AddressError, Page, Responder, split

BIG = Page(HTTPStatus.OK, "text/plain", b"x" * (8 << 20))


def fine() -> Page:
    return Page(HTTPStatus.OK, "text/plain", b"fine\n")


def red() -> Page:
    return Page(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"red\n")


def broken() -> Page:
    raise LookupError("no such thing")


PAGES = {"/fine": fine, "/red": red, "/broken": broken, "/big": lambda: BIG}


class Asked:
    """A responder on a port of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, request: bytes) -> bytes:
        reader, writer = await self.connect()
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def responding(
    head_time: float = 5.0, reply_time: float = 10.0, most_connections: int = 64
) -> AsyncIterator[Asked]:
    responder = Responder(PAGES, head_time=head_time, reply_time=reply_time, most_connections=most_connections)
    address = await responder.listen("127.0.0.1:0")
    try:
        yield Asked(int(address.rpartition(":")[2]))
    finally:
        await responder.close()


def said(request: bytes) -> bytes:
    async def ask() -> bytes:
        async with responding() as asked:
            return await asked.say(request)

    return asyncio.run(ask())


async def hung_up(reader: asyncio.StreamReader) -> bool:
    """Wait for what comes; True if that was nothing but the end, orderly or not."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_a_page_comes_with_its_length_and_the_connection_ends() -> None:
    assert said(b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n") == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
        b"Cache-Control: no-store\r\nConnection: close\r\n\r\nfine\n"
    )


def test_head_gets_everything_but_the_body() -> None:
    reply = said(b"HEAD /fine HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b"Content-Length: 5\r\n" in reply
    assert reply.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(b"GET /fine HTTP/1.0\r\n\r\n", 200, id="http-1.0-without-host"),
        pytest.param(b"GET /fine?verbose=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200, id="a-query-is-ignored"),
        pytest.param(b"GET /red HTTP/1.1\r\nHost: a\r\n\r\n", 503, id="a-page-says-its-status"),
        pytest.param(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404, id="no-such-page"),
        pytest.param(b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n", 500, id="a-page-that-cannot-be-made"),
        pytest.param(b"POST /fine HTTP/1.1\r\nHost: a\r\n\r\n", 405, id="another-method"),
        pytest.param(b"GET /fine HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413, id="a-body"),
        pytest.param(b"GET /fine HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413, id="a-body-in-chunks"),
        pytest.param(b"GET  /fine HTTP/1.1\r\n\r\n", 400, id="a-space-too-many"),
        pytest.param(b"GET /fine HTTP/2.0\r\n\r\n", 400, id="another-version"),
        pytest.param(b"\x16\x03\x01\x02\x00\r\n\r\n", 400, id="no-http-at-all"),
        pytest.param(b"GET /fine HTTP/1.1\r\nA: " + b"x" * 8192 + b"\r\n\r\n", 431, id="a-head-too-long"),
    ],
)
def test_status(request_bytes: bytes, status: int) -> None:
    assert said(request_bytes).startswith(b"HTTP/1.1 %d " % status)


def test_a_head_may_come_byte_by_byte_and_the_sending_half_may_be_closed_after_it() -> None:
    async def ask() -> bytes:
        async with responding() as asked:
            reader, writer = await asked.connect()
            for byte in b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n":
                writer.write(bytes((byte,)))
                await writer.drain()
            writer.write_eof()
            reply = await reader.read()
            writer.close()
            return reply

    assert asyncio.run(ask()).endswith(b"fine\n")


async def _silent(asked: Asked) -> None:
    reader, writer = await asked.connect()
    assert await hung_up(reader)
    writer.close()


async def _never_reading(asked: Asked) -> None:
    client = socket.create_connection(("127.0.0.1", asked.port))
    client.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.sleep(0.5)
    received = 0
    try:
        while more := await asyncio.to_thread(client.recv, 1 << 20):
            received += len(more)
    except ConnectionResetError:
        pass
    client.close()
    assert received < len(BIG.body)


@pytest.mark.parametrize("behaviour", [_silent, _never_reading], ids=["says-nothing", "does-not-take-the-reply"])
def test_a_client_has_its_time(behaviour: Callable[[Asked], Awaitable[None]]) -> None:
    async def meet() -> None:
        async with responding(head_time=0.2, reply_time=0.2) as asked:
            await asyncio.wait_for(behaviour(asked), 10)

    asyncio.run(meet())


def test_a_head_that_drips_in_has_no_more_time_than_one_that_does_not_come() -> None:
    async def meet() -> float:
        async with responding(head_time=0.3) as asked:
            reader, writer = await asked.connect()
            began = asyncio.get_running_loop().time()
            ending = asyncio.create_task(hung_up(reader))
            while not ending.done():
                writer.write(b"A")
                await asyncio.sleep(0.02)
            assert ending.result()
            writer.close()
            return asyncio.get_running_loop().time() - began

    assert asyncio.run(meet()) < 3


def test_a_crowd_of_silent_clients_keeps_no_probe_out() -> None:
    async def meet() -> bytes:
        async with responding(most_connections=4) as asked:
            crowd = [await asked.connect() for _ in range(40)]
            reply = await asyncio.wait_for(asked.say(b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n"), 2)
            for _, writer in crowd:
                writer.close()
            return reply

    assert asyncio.run(meet()).endswith(b"fine\n")


def test_many_at_once_are_all_answered() -> None:
    async def meet() -> list[bytes]:
        async with responding() as asked:
            return await asyncio.gather(*(asked.say(b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(60)))

    assert all(reply.endswith(b"fine\n") for reply in asyncio.run(meet()))


def test_closing_drops_whoever_is_connected() -> None:
    async def meet() -> None:
        async with responding() as asked:
            reader, writer = await asked.connect()
            await asyncio.sleep(0.05)
        assert await hung_up(reader)
        writer.close()

    asyncio.run(meet())


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (":9090", "", 9090),
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("[::1]:80", "::1", 80),
        ("localhost:0", "localhost", 0),
    ],
)
def test_an_address_has_a_host_and_a_port(address: str, host: str, port: int) -> None:
    assert split(address) == (host, port)


@pytest.mark.parametrize("address", ["", "9090", "a:", "a:b", "a:65536", "::1:80", "a:-1", "a:\u0661"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match="want HOST:PORT, :PORT or"):
        split(address)


def test_every_interface_answers_in_both_families_at_one_port() -> None:
    async def meet() -> bytes:
        responder = Responder(PAGES)
        port = int((await responder.listen(":0")).rpartition(":")[2])
        reply = await Asked(port).say(b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n")
        await responder.close()
        return reply

    assert asyncio.run(meet()).endswith(b"fine\n")


def test_a_port_that_is_taken_is_one_line() -> None:
    async def meet() -> None:
        async with responding() as asked:
            await Responder(PAGES).listen(f"127.0.0.1:{asked.port}")

    with pytest.raises(AddressError, match=r"^cannot listen at 127\.0\.0\.1:\d+: .*in use"):
        asyncio.run(meet())


def test_a_unix_socket_answers_as_a_port_does(tmp_path: Path) -> None:
    path = tmp_path / "health.sock"

    async def meet() -> bytes:
        responder = Responder(PAGES)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        await responder.listen_on(listening)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET /fine HTTP/1.1\r\nHost: a\r\n\r\n")
        reply = await reader.read()
        writer.close()
        await responder.close()
        return reply

    assert asyncio.run(meet()).endswith(b"fine\n")
