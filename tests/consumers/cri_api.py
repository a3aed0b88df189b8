"""The few calls of the container runtime interface that the tests make, without a gRPC library.

A call is one HTTP/2 stream with one message each way; messages are lists of (field number, value), as in the
interface's api.proto. How a call failed is in the runtime's own log: the reason travels compressed, and is not read.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

Message = list[tuple[int, "bytes | str | int | Message"]]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_SERVICE = "/runtime.v1.RuntimeService/"
_NETWORK_OF_THE_NODE = 2


class Refused(Exception):
    """Raised when the runtime answers a call with no message."""


def encode(message: Message) -> bytes:
    """A message in protobuf's wire format."""
    out = b""
    for number, value in message:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            body = encode(value) if isinstance(value, list) else value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(body)) + body
    return out


def decode(body: bytes) -> dict[int, bytes | int]:
    """The fields of a message that are numbers, texts or messages."""
    found: dict[int, bytes | int] = {}
    at = 0
    while at < len(body):
        key, at = _read_varint(body, at)
        value, at = _read_varint(body, at)
        if key & 7 == 2:
            found[key >> 3] = body[at : at + value]
            at += value
        else:
            found[key >> 3] = value
    return found


class Runtime:
    """The runtime that listens at a socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pod(self, name: str) -> tuple[str, Message]:
        """Run a pod on the node's own network: its id, and the configuration that containers in it have to repeat."""
        config: Message = [
            (1, [(1, name), (2, f"uid-{name}"), (3, "default")]),
            (8, [(2, [(1, [(1, _NETWORK_OF_THE_NODE)])])]),
        ]
        return _text(self.call("RunPodSandbox", [(1, config)])[1]), config

    def container(self, pod: tuple[str, Message], image: str, devices: list[str], mounts: list[str]) -> str:
        """Create and start a container that sleeps, with these CDI devices and these read-only directories; its id."""
        config: Message = [(1, [(1, "main")]), (2, [(1, image)]), (3, "/bin/sleep"), (3, "600")]
        for path in mounts:
            config.append((7, [(1, path), (2, path), (3, 1)]))
        for device in devices:
            config.append((17, [(1, device)]))
        made = _text(self.call("CreateContainer", [(1, pod[0]), (2, config), (3, pod[1])])[1])
        self.call("StartContainer", [(1, made)])
        return made

    def run(self, container: str, *command: str) -> tuple[int, str]:
        """Run a command in a container: its exit code, and all that it wrote."""
        ended = self.call("ExecSync", [(1, container), *((2, word) for word in command), (3, 20)])
        return int(ended.get(3, 0)), _text(ended.get(1, b"")) + _text(ended.get(2, b""))

    def remove(self, pod: str) -> None:
        """Stop a pod and take it away with its containers."""
        self.call("StopPodSandbox", [(1, pod)])
        self.call("RemovePodSandbox", [(1, pod)])

    def call(self, method: str, message: Message) -> dict[int, bytes | int]:
        """One call; raises Refused, OSError where nobody listens."""
        body = encode(message)
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": _SERVICE + method,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self._path))
            connection.sendall(
                _PREFACE
                + _frame(_SETTINGS, 0, 0, b"")
                + _frame(_HEADERS, _END_HEADERS, 1, b"".join(_header(*pair) for pair in headers.items()))
                + _frame(_DATA, _END_STREAM, 1, b"\0" + struct.pack(">I", len(body)) + body)
            )
            answer = b"".join(_answer(connection))
        if len(answer) < 5:
            raise Refused(method)
        return decode(answer[5:])


def _answer(connection: socket.socket) -> Iterator[bytes]:
    """What the stream carries until its end."""
    with connection.makefile("rb") as stream:
        while True:
            head = stream.read(9)
            if len(head) < 9:
                return
            payload = stream.read(int.from_bytes(head[:3], "big"))
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind in (_SETTINGS, _PING) and not flags & _ACK:
                connection.sendall(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
            if number == 1 and kind == _DATA:
                yield payload
            if number == 1 and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                return


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _header(name: str, value: str) -> bytes:
    """A header that enters no table; both texts are short and plain."""
    return b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (body[at] & 127) << shift
        shift += 7
        at += 1
        if body[at - 1] < 128:
            return value, at


def _text(value: bytes | int) -> str:
    assert isinstance(value, bytes)
    return value.decode()
