"""The connection of one fetch, which whoever has waited long enough can cut.

A server may send a byte now and then for ever, so no time limit of a single read bounds anything. Once the line is cut
the read under way returns.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading

_LONGEST = 300


class FetchError(Exception):
    """Raised where the file cannot be had now; one line, whatever a server has put into it."""

    def __init__(self, reason: str) -> None:
        words = " ".join(reason.split())[:_LONGEST]
        super().__init__("".join(letter if letter.isprintable() else "?" for letter in words))


class Line:
    """The connection of one fetch; `cut` may be called by any thread, at any time, and never waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_cut = False

    def opened(self, connected: socket.socket) -> None:
        """This is the connection from now on; TLS over it, which takes the socket for itself, makes no difference."""
        with self._lock:
            self._forget()
            self._socket = socket.socket(fileno=os.dup(connected.fileno()))
        if self.is_cut:
            self.cut()

    def cut(self) -> None:
        """End the fetch: what it waits for fails, and it waits for nothing any more."""
        self.is_cut = True
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """There is no connection any more."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
