"""The control socket itself: who may speak, how, and what stays when either side goes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from simnode.agent.control import listening
from simnode.agent.orders import Orders, answered
from simnode.control_client import SOCKET, ControlError, call, connect
from tests.conftest import ORDINARY
from tests.control.nodes import Node, running

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("socket") / "node") as made:
        yield made


def conversation(node: Node, *lines: bytes) -> list[dict[str, object]]:
    with connect(node.socket, 10) as connection:
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answers:
            return [json.loads(line) for line in answers]


def test_only_the_owner_can_enter(node: Node) -> None:
    assert stat.S_IMODE(node.socket.parent.stat().st_mode) == 0o700
    assert node.socket.is_socket()


def test_requests_of_one_connection_are_answered_in_order(node: Node) -> None:
    keys = ["name", "uuid", "index"]
    lines = [json.dumps({"verb": "get", "gpu": 0, "keys": [key]}).encode() + b"\n" for key in keys]
    answers = conversation(node, *lines)
    assert [list(answer["devices"]["0"]) for answer in answers] == [[key] for key in keys]  # type: ignore[index]


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"{\n", b'{"verb": 1}\n'])
def test_what_is_no_request_is_refused_and_the_conversation_goes_on(node: Node, line: bytes) -> None:
    refused, answered = conversation(node, line, b'{"verb": "fault-list"}\n')
    assert (refused["ok"], refused["code"]) == (False, 2)
    assert answered == {"ok": True, "faults": []}


def test_a_request_without_an_end_gets_no_answer(node: Node) -> None:
    assert conversation(node, b'{"verb": "status"}') == []


def test_a_request_that_is_too_long_is_refused(node: Node) -> None:
    with connect(node.socket, 10) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"x" * (1 << 21))
        with connection.makefile("rb") as answers:
            assert "1048576 bytes at the most" in json.loads(answers.readline())["faults"][0]


def test_a_client_that_hangs_up_disturbs_nobody(node: Node) -> None:
    for _ in range(20):
        with connect(node.socket, 10) as connection:
            connection.sendall(b'{"verb": "set", "gpu": 1, "assignments": ["utilization.gpu=5"]}\n')
    assert node.call("fault-list") == {"faults": []}


def test_a_crowd_that_says_nothing_keeps_no_command_out(node: Node) -> None:
    """Nor one that has half a request, nor one that takes no answer."""
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(node.socket, 10)) for _ in range(300)]
        for connection, said in zip(crowd[50:], itertools.cycle((b"", b"{", b'{"verb": "get"}\n')), strict=False):
            connection.sendall(said)
        assert node.call("fault-list") == {"faults": []}
        assert crowd[0].recv(1) == b""


def test_what_goes_wrong_unforeseen_is_an_answer_and_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def carry_out(self, line: bytes) -> dict[str, object]:
            raise LookupError(line.decode())

    answer = asyncio.run(answered(cast(Orders, Broken()), b"x"))
    assert answer == {"ok": False, "code": 1, "faults": ["cannot be carried out: LookupError: x"]}
    assert "LookupError" in caplog.text


def test_an_agent_that_hangs_is_told_of_in_time_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / SOCKET
    with listening(path, os.geteuid()), pytest.raises(ControlError) as raised:
        call(path, {"verb": "status"}, 0.1, whose="node lab")
    assert raised.value.faults == ("node lab: the agent does not answer within 0.1 s",)


def test_a_client_waits_for_its_place_in_the_queue(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent.sock"))
        listener.listen(0)
        with connect(tmp_path / "agent.sock", 1), ThreadPoolExecutor() as pool:
            with pytest.raises(TimeoutError):
                connect(tmp_path / "agent.sock", 0.05)
            waiting = pool.submit(connect, tmp_path / "agent.sock", 10)
            listener.accept()[0].close()
            waiting.result().close()


def test_many_clients_at_once_lose_no_change(node: Node) -> None:
    async def main() -> None:
        await asyncio.gather(
            *(asyncio.to_thread(node.set, gpu, f"utilization.gpu={value}") for value in range(5) for gpu in range(8))
        )
        await asyncio.gather(*(asyncio.to_thread(node.set, gpu, f"utilization.memory={gpu}") for gpu in range(8)))

    asyncio.run(main())
    assert [node.get(gpu, "utilization.memory") for gpu in range(8)] == list(range(8))


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another uid")
@pytest.mark.root
def test_another_uid_is_refused(node: Node) -> None:
    """Even with the way to the socket open."""
    script = (
        f"import os, sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from simnode.control_client import *\n"
        "directory = os.open(sys.argv[1], os.O_PATH)\n"
        f"os.setuid({ORDINARY})\n"
        "try: call(f'/proc/self/fd/{directory}/agent.sock', {'verb': 'status'})\n"
        "except ControlError as error: print(error)\n"
    )
    node.socket.chmod(0o777)
    node.socket.parent.chmod(0o755)
    try:
        said = subprocess.run(
            [sys.executable, "-c", script, str(node.socket.parent)], capture_output=True, text=True, check=True
        ).stdout
    finally:
        node.socket.parent.chmod(0o700)
    assert said == f"uid {ORDINARY} may not control this node: it belongs to uid 0\n"


def test_a_socket_that_a_killed_agent_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / SOCKET
    path.parent.mkdir(mode=0o755)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with listening(path, os.geteuid()), connect(path, 1):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


def test_a_path_longer_than_an_address_will_do(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 50) / SOCKET
    path.parent.parent.mkdir()
    with listening(path, os.geteuid()), connect(path, 1):
        pass


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / SOCKET
    with pytest.raises(PermissionError, match="must be a directory of uid"), listening(path, os.geteuid() + 1):
        pass


def test_the_client_imports_nothing_heavy() -> None:
    script = "import sys, simnode.control_client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert {"asyncio", "msgspec", "yaml", "click", "ctypes"}.isdisjoint(run.stdout.split())
