"""The agent's log: one line an event, JSON or plain, with simulator, surface and generation where there are any.

Written by the standard library's logging and a formatter of ours; structlog costs 79 ms at every start and would give
no more. Lines are written by a thread of its own, because a full pipe must not stop the event loop and with it the
probes. What does not fit meanwhile is dropped and counted; the count is told as soon as the pipe moves again.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from datetime import UTC, datetime

FIELDS = ("simulator", "surface", "generation")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("json", "plain")
_LONGEST_QUEUE = 1000


class Lines(logging.Formatter):
    """One line a record; times are UTC. `form` is one of FORMATS."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        written = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = record.levelname.lower()
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}: {self.formatException(record.exc_info)}"
        fields = {name: value for name in FIELDS if (value := getattr(record, name, "")) not in ("", None)}
        if self._json:
            return json.dumps({"time": written, "level": level, "message": message, **fields}, ensure_ascii=False)
        named = "".join(f" {name}={value}" for name, value in fields.items())
        return f"{written} {level:<7} {' '.join(message.split())}{named}"


class Outlet(logging.Handler):
    """Hands lines to a thread that writes them to `descriptor`, by default standard error."""

    def __init__(self, descriptor: int = 2, longest_queue: int = _LONGEST_QUEUE) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(longest_queue)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record; never waits."""
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._dropped += 1

    def finish(self, timeout: float) -> None:
        """Wait until everything is written, `timeout` seconds at most; call it once, at the end."""
        try:
            self._lines.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._put(line)
            dropped, self._dropped = self._dropped, 0
            if dropped:
                text = f"{dropped} lines of the log were lost, because nobody took them"
                lost = logging.LogRecord("simnode", logging.WARNING, "", 0, text, None, None)
                self._put(self.format(lost))

    def _put(self, line: str) -> None:
        text = memoryview(f"{line}\n".encode(errors="backslashreplace"))
        try:
            while text:
                text = text[os.write(self._descriptor, text) :]
        except OSError:
            self._dropped += 1
