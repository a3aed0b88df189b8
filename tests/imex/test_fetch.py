"""Fetching software from servers and files that are not what they should be: it has an end, and goes nowhere else."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from simnode.simulators.imex.software import ARCHIVE
from simnode.state import IMEXSoftware
from tests.imex.archives import archive
from tests.imex.test_software import STAGED, Scene, served, waiting

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
NOWHERE = "0" * 64


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that treats each connection so, whatever it is asked; its URL."""

    def serve() -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection = listening.accept()[0]
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/imex.tar.xz"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def dripping(start: bytes) -> Callable[[socket.socket], None]:
    """`start`, and then a byte now and then for ever."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)

    return answer


def sending(content: bytes) -> Callable[[socket.socket], None]:
    """`content`, and then the end."""
    return lambda connection: connection.sendall(content)


def waiting_itself(connection: socket.socket) -> None:
    """Nothing, until the other hangs up."""
    connection.recv(1)


async def refused(scene: Scene, url: str) -> str:
    """Why nothing can be had from there."""
    await scene.stage(IMEXSoftware(url, NOWHERE))
    return (await waiting(scene)).removeprefix("software: ").removesuffix("; tried again in 60 s")


DRIPS = {"headers": HEAD, "content": HEAD + b"\r\n", "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n100000\r\n"}


@pytest.mark.parametrize("start", DRIPS.values(), ids=DRIPS)
def test_a_server_that_never_comes_to_an_end_is_left_in_time(tmp_path: Path, start: bytes) -> None:
    """Although it never leaves any single read waiting."""
    scene = Scene(tmp_path, first_retry=60, patience=0.3)
    with answering(dripping(start)) as url:
        assert asyncio.run(refused(scene, url)) == "takes longer than 0.3 s"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_says_nothing_is_left_in_time(tmp_path: Path, scheme: str) -> None:
    """With TLS, too, where the greeting is what one waits for."""
    scene = Scene(tmp_path, first_retry=60, patience=0.3)
    began = time.monotonic()
    with answering(waiting_itself) as url:
        told = asyncio.run(refused(scene, url.replace("http", scheme, 1)))
    assert (told, time.monotonic() - began < 5) == ("takes longer than 0.3 s", True)


@pytest.mark.parametrize("start", [b"", HEAD + b"\r\n"], ids=["silent", "dripping"])
def test_what_nobody_wants_any_more_ends_at_once(tmp_path: Path, start: bytes) -> None:
    """An agent that ends does not wait for a server either, nor leave behind what it had got."""
    scene = Scene(tmp_path, first_retry=60)
    reached = threading.Event()

    def answer(connection: socket.socket) -> None:
        reached.set()
        if start:
            dripping(start)(connection)
        connection.recv(1)

    async def run() -> float:
        async def follow() -> None:
            async for _ in scene.imex.requeue():
                pass

        await scene.stage(IMEXSoftware(url, NOWHERE))
        task = asyncio.create_task(follow())
        while not reached.is_set():
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        await scene.imex.discard()
        return time.monotonic() - began

    with answering(answer) as url:
        assert asyncio.run(run()) < 2
    assert not list((scene.root / "state").glob("imex*"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HEAD + b"Content-Length: 100\r\n\r\nten bytes.", "ends after 10 of 100 bytes"),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", "is larger than 64 MiB"),
        (HEAD + b"Content-Length: -1\r\n\r\n", f"its SHA-256 is {'e3b0c442'}"),
        (b"", "cannot be fetched: Remote end closed connection without response"),
        (b"SSH-2.0-OpenSSH\r\n", "cannot be fetched: SSH-2.0-OpenSSH"),
        (b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\n\r\n", "leads to what is neither http nor https"),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", "HTTP 302 Found - Redirection to url"),
        (b"HTTP/1.1 404 \x1b[2Jnot\x07\r\n\r\n", "HTTP 404 ?[2Jnot?"),
        (b"HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n", "HTTP 302 The HTTP server returned a redirect error"),
    ],
    ids=["cut off", "huge", "negative", "closed", "no HTTP", "to ftp", "to a file", "colourful", "in a circle"],
)
def test_a_server_that_is_none_is_named_on_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    scene = Scene(tmp_path, first_retry=60)
    with answering(sending(content)) as url:
        told = asyncio.run(refused(scene, url))
    assert told.startswith(reason)
    assert told.isprintable()


def test_where_a_server_leads_to_is_followed(tmp_path: Path) -> None:
    scene, wanted = Scene(tmp_path), archive(tmp_path / "imex.tar.xz")
    with served((tmp_path / "imex.tar.xz").read_bytes()) as url:
        moved = f"HTTP/1.1 301 Moved\r\nLocation: {url}\r\n\r\n".encode()
        with answering(sending(moved)) as first:
            asyncio.run(scene.obtained(msgspec.structs.replace(wanted, url=first)))
    assert scene.staged() == STAGED


FILES = {
    "FIFO": ("/fifo", "is no regular file"),
    "directory": ("", "is no regular file"),
    "endless": ("/zero", "is no regular file"),
    "huge": ("/huge", "is larger than 64 MiB"),
    "missing": ("/none", "cannot be fetched: [Errno 2] No such file or directory"),
    "NUL": ("/%00", "cannot be fetched: embedded null byte"),
}


@pytest.mark.parametrize(("name", "reason"), FILES.values(), ids=FILES)
def test_a_file_that_is_none_is_not_waited_for(tmp_path: Path, name: str, reason: str) -> None:
    """Nobody ever writes into the FIFO, and the other never ends."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(65 << 20)
    scene = Scene(tmp_path, first_retry=60)
    assert asyncio.run(refused(scene, f"file://{tmp_path}{name}")).startswith(reason)


def test_a_file_of_another_host_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, first_retry=60)
    assert asyncio.run(refused(scene, "file://there/x")) == "is on another host: a file's URL has three slashes"


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda path, foreign: path.symlink_to(foreign),
    "FIFO": lambda path, _: os.mkfifo(path),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
@pytest.mark.parametrize("name", [ARCHIVE, f"{ARCHIVE}.tmp"], ids=["archive", "temporary"])
def test_what_is_planted_where_the_archive_belongs_gives_way(
    tmp_path: Path, name: str, plant: Callable[[Path, Path], None]
) -> None:
    """Nothing is written through it, read from it or waited for."""
    foreign = tmp_path / "foreign"
    foreign.write_text("somebody's")
    scene, wanted = Scene(tmp_path), archive(tmp_path / "imex.tar.xz")
    (scene.root / "state").mkdir()
    plant(scene.root / name, foreign)
    asyncio.run(scene.obtained(wanted))
    assert (scene.staged(), foreign.read_text()) == (STAGED, "somebody's")


def test_a_directory_where_the_archive_belongs_stays(tmp_path: Path) -> None:
    """It is said while software is wanted, and in nobody's way otherwise."""
    scene, wanted = Scene(tmp_path, first_retry=60), archive(tmp_path / "imex.tar.xz")
    (scene.root / ARCHIVE / "within").mkdir(parents=True)

    async def run() -> str:
        await scene.stage(wanted)
        told = await waiting(scene)
        await scene.stage(None)
        return told

    assert "imex-software: is a directory where the archive belongs" in asyncio.run(run())
    assert (scene.imex.ready(), (scene.root / ARCHIVE / "within").exists()) == (True, True)


def test_what_a_killed_agent_had_fetched_goes_with_the_wish_for_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (scene.root / "state").mkdir()
    (scene.root / f"{ARCHIVE}.tmp").write_bytes(b"half")
    asyncio.run(scene.stage(None))
    assert not (scene.root / f"{ARCHIVE}.tmp").exists()


def test_it_says_what_it_waits_for_from_the_beginning(tmp_path: Path) -> None:
    """And no longer what went wrong with another software."""
    scene = Scene(tmp_path, first_retry=60)

    async def run() -> str:
        await refused(scene, f"file://{tmp_path}/none")
        await scene.stage(IMEXSoftware(f"file://{tmp_path}/other", NOWHERE))
        return scene.imex.progress()

    assert asyncio.run(run()) == "software: about to be fetched"
