"""The client's side of a node's control socket: one request, one answer.

Requests and answers are JSON, one a line (docs/overrides.md has the verbs). A command that only talks to a running node
must not cost more than its interpreter, so nothing is imported here but the plain parts of the standard library: no
asyncio, no msgspec, no YAML. It judges nothing either: the agent does, and its faults come back as they are.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET, HEALTH_SOCKET = "control/agent.sock", "control/health.sock"
"""The two sockets below a node root: where commands reach the agent, and where its probes are served over HTTP."""

REFUSED, FAILED = 2, 1
"""Exit codes: what was asked is wrong; what was asked could not be done."""

Answer = dict[str, "Any"]

_POLL = 0.01


class ControlError(Exception):
    """Raised by `call`: the agent refused (`code` REFUSED) or could not do it, or none answers (FAILED).

    `faults` holds a line for each reason.
    """

    def __init__(self, faults: tuple[str, ...], code: int) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults
        self.code = code


def call(
    path: str | os.PathLike[str], request: Mapping[str, object], timeout: float = 60.0, *, whose: str = ""
) -> Answer:
    """What the agent that listens on the socket at `path` answers; `timeout` seconds bound each wait. ControlError.

    `whose` agent it is, where a person knows it by another name than that path.
    """
    whose = whose or os.fspath(path)
    try:
        with connect(path, timeout) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
        answer = json.loads(line)
    except TimeoutError:
        raise ControlError((f"{whose}: the agent does not answer within {timeout:g} s",), FAILED) from None
    except OSError as error:
        raise ControlError((f"{whose}: no agent answers: {error.strerror or error}",), FAILED) from None
    except ValueError:
        raise ControlError((f"{whose}: the agent hung up without an answer",), FAILED) from None
    if not answer.pop("ok"):
        raise ControlError(tuple(answer["faults"]), answer["code"])
    return dict(answer)


def connect(path: str | os.PathLike[str], timeout: float) -> socket.socket:
    """A connection to the socket at `path`, however long the path is: an address holds no more than 107 bytes."""
    above, name = os.path.split(path)
    directory = os.open(above or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            _connect(connection, f"/proc/self/fd/{directory}/{name}", timeout)
        except BaseException:
            connection.close()
            raise
    finally:
        os.close(directory)
    return connection


def _connect(connection: socket.socket, address: str, timeout: float) -> None:
    """Wait while more are queued than the agent listens for: the kernel says EAGAIN at once where a timeout is set."""
    until = time.monotonic() + timeout
    while True:
        try:
            connection.connect(address)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError from None
            time.sleep(_POLL)
        else:
            return
