"""Fetching one file of bounded size from a URL, in a thread: what it takes is imported by those alone who fetch."""

from __future__ import annotations

import http.client
import os
import socket
import stat
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from simnode.simulators.imex.archive import LARGEST
from simnode.simulators.imex.line import FetchError, Line

_CHUNK = 256 << 10
_QUIET = 10.0
_SCHEMES = ("http", "https")


def pieces(url: str, line: Line) -> Iterator[bytes]:
    """What is at the URL, piece by piece. Raises FetchError for what is too large, cut off, or cannot be had."""
    if url.startswith("file:"):
        return _of_file(url)
    return _of_server(url, line)


def _of_file(url: str) -> Iterator[bytes]:
    where = urllib.parse.urlsplit(url)
    if where.netloc not in ("", "localhost"):
        raise FetchError("is on another host: a file's URL has three slashes")
    path = urllib.request.url2pathname(where.path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise FetchError(f"cannot be fetched: {error}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FetchError("is no regular file")
        left = LARGEST
        while piece := os.read(descriptor, _CHUNK):
            left -= len(piece)
            if left < 0 or found.st_size > LARGEST:
                raise FetchError(f"is larger than {LARGEST >> 20} MiB")
            yield piece
    finally:
        os.close(descriptor)


def _of_server(url: str, line: Line) -> Iterator[bytes]:
    try:
        with urllib.request.build_opener(_Redirects(), _HTTP(line), _HTTPS(line)).open(url, timeout=_QUIET) as answer:
            told = str(answer.headers.get("Content-Length", ""))
            size, expected = 0, int(told) if told.isascii() and told.isdigit() and len(told) < 16 else None
            if expected is not None and expected > LARGEST:
                raise FetchError(f"is larger than {LARGEST >> 20} MiB")
            while piece := answer.read1(_CHUNK):
                size += len(piece)
                if size > LARGEST:
                    raise FetchError(f"is larger than {LARGEST >> 20} MiB")
                yield piece
            if expected is not None and size < expected:
                raise FetchError(f"ends after {size} of {expected} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise FetchError(f"cannot be fetched: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(f"cannot be fetched: {error}") from None
    finally:
        line.close()


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *answer: Any) -> Any:
        """Follow to the last of `answer`, the new URL; the second is what is still to be read of the old one."""
        if urllib.parse.urlsplit(answer[-1]).scheme not in _SCHEMES:
            answer[1].close()
            raise FetchError("leads to what is neither http nor https")
        return super().redirect_request(*answer)


class _HTTP(urllib.request.HTTPHandler):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connecting(http.client.HTTPConnection, self._line), req)


class _HTTPS(urllib.request.HTTPSHandler):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connecting(http.client.HTTPSConnection, self._line), req)


def _connecting(kind: type[http.client.HTTPConnection], line: Line) -> Any:
    """The class of connections of this kind that tell the line of themselves."""

    class Connection(kind):  # type: ignore[misc, valid-type]
        _sock: socket.socket | None = None

        @property
        def sock(self) -> socket.socket | None:
            return self._sock

        @sock.setter
        def sock(self, value: socket.socket | None) -> None:
            self._sock = value
            if value is not None:
                line.opened(value)

    return Connection
