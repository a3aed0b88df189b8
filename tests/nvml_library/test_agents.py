"""A setter and the agent that it asks: one that is slow, goes away or was stopped; signals meanwhile."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from simnode.nvml.cells import IMAGE
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INVALID_ARGUMENT, NO_PERMISSION, SUCCESS, Library, Scene

UNKNOWN = 999
SLOW = 0.3
Answer = Callable[[socket.socket], None]


def answering(line: bytes, *, after: float = 0.0, parts: int = 1) -> Answer:
    """Reads an order and answers it with `line` after so many seconds, in so many pieces."""

    def answer(peer: socket.socket) -> None:
        if not peer.recv(4096):
            return
        time.sleep(after)
        size = -(-len(line) // parts)
        for start in range(0, len(line), size):
            peer.sendall(line[start : start + size])
            time.sleep(0.01 if parts > 1 else 0)

    return answer


def going_away(peer: socket.socket) -> None:
    """Takes the order and says nothing."""
    peer.recv(4096)


TIMEVAL = struct.Struct("ll")
OK = json.dumps({"ok": True, "generation": 3}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def library(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The library on an image that lies as in a node root: the agent's socket belongs in control/ beside driver/."""
    config = tmp_path / "driver" / "config"
    config.mkdir(parents=True)
    (tmp_path / "control").mkdir()
    scene.path.rename(config / "image.1")
    assert IMAGE.size == (config / "image.1").stat().st_size
    monkeypatch.setenv("SIMNODE_IMAGE", str(config))
    return scene.start(node(runtime({"persistence_mode": 0})))


@contextmanager
def agent(folder: Path, answer: Answer) -> Iterator[None]:
    """An agent that does this to each connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "control" / "agent.sock"))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    answer(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def set_mode(library: Library) -> int:
    """What NVML answers to a change of the persistence mode."""
    return library.code("nvmlDeviceSetPersistenceMode", library.handle(), 1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(answering(OK), SUCCESS, id="at once"),
        pytest.param(answering(OK, parts=5), SUCCESS, id="bit by bit"),
        pytest.param(answering(b'{"ok":false,"code":2,"faults":["no"]}\n'), INVALID_ARGUMENT, id="refuses"),
        pytest.param(answering(b'{"ok":false,"code":1,"faults":["no"]}\n'), UNKNOWN, id="fails"),
        pytest.param(answering(OK[:-9]), UNKNOWN, id="breaks off"),
        pytest.param(going_away, UNKNOWN, id="goes away"),
    ],
)
def test_the_agents_answer_decides(tmp_path: Path, library: Library, answer: Answer, code: int) -> None:
    with agent(tmp_path, answer):
        assert set_mode(library) == code


def test_signals_meanwhile_are_no_answer(tmp_path: Path, library: Library) -> None:
    """A profiler's go off all the time, and a wait that has an end is not taken up again by the kernel."""
    hits: list[int] = []
    done = threading.Event()
    asking = threading.get_ident()

    def disturb() -> None:
        while not done.wait(0.02):
            signal.pthread_kill(asking, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda number, _: hits.append(number))
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with agent(tmp_path, answering(OK, after=SLOW)):
            assert set_mode(library) == SUCCESS
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert hits


def patience(sockets_before: set[int]) -> tuple[int, ...]:
    """How many seconds the socket that this process has since then waits at most, to read and to write or connect."""
    while not (fresh := open_sockets() - sockets_before):
        time.sleep(0.005)
    with socket.socket(fileno=os.dup(fresh.pop())) as connection:
        kinds = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
        return tuple(TIMEVAL.unpack(connection.getsockopt(socket.SOL_SOCKET, kind, 16))[0] for kind in kinds)


def open_sockets() -> set[int]:
    """This process's descriptors that are sockets."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing itself is gone
            found |= {int(path.name)} if str(path.readlink()).startswith("socket:") else set()
    return found


def test_no_wait_for_an_agent_that_was_stopped_is_without_end(tmp_path: Path, library: Library) -> None:
    """Neither for the answer nor, when many ask one that takes nobody in, for a place."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        path = str(tmp_path / "control" / "agent.sock")
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        before, codes = open_sockets(), list[int]()
        thread = threading.Thread(target=lambda: codes.append(set_mode(library)))
        thread.start()
        waits = patience(before)
        listener.close()
        thread.join()
    assert waits == (30, 30)
    assert codes == [NO_PERMISSION]
