"""A terminal in memory: what a full-screen program draws there is read as lines of text, with their colours.

Refuses nothing and waits for everything: a screen that does not come within its time is an error that shows the last.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyte

TYPE = "linux"
"""The TERM that programs are given: its capabilities are those that pyte knows (xterm's are more)."""
QUIET = 0.15
"""Seconds without a character after which a screen counts as drawn."""
LONGEST_DRAWING = 5


class Terminal:
    """A program under a pseudo terminal of its own, its controlling one; ends with the context."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environ: Mapping[str, str],
        user: Mapping[str, Any] | None = None,
        *,
        rows: int,
        columns: int,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._program = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd="/",
            env={**environ, "TERM": TYPE},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  (no threads here)
            **(user or {}),
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._program.poll() is None:
            os.killpg(self._program.pid, signal.SIGTERM)
            try:
                self._program.wait(10)
            except subprocess.TimeoutExpired:
                self._program.kill()
                self._program.wait()
        os.close(self._master)

    def lines(self) -> list[str]:
        """The screen, line by line, without trailing blanks."""
        return [line.rstrip() for line in self.screen.display]

    def until(self, shown: Callable[[str], bool], seconds: float) -> str:
        """The text of a screen that `shown` accepts, once drawn to its end. Raises TimeoutError with the last one."""
        end = time.monotonic() + seconds
        while not shown("\n".join(self.lines())):
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise TimeoutError("the screen did not come:\n" + "\n".join(self.lines()))
        self.after(0)
        return "\n".join(self.lines())

    def after(self, seconds: float) -> None:
        """Wait so long, and then for a moment in which nothing is drawn; less if the program closes the terminal."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end or (now < end + LONGEST_DRAWING and self._drawing(QUIET)):
            if not self._read(max(0, end - now)):
                return

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def end(self, seconds: float) -> int:
        """The exit status of the program, which ends within the time. Raises TimeoutError if it does not."""
        end = time.monotonic() + seconds
        while self._read(max(0, end - time.monotonic())):
            if time.monotonic() > end:
                raise TimeoutError("the program did not end:\n" + "\n".join(self.lines()))
        return self._program.wait(seconds)

    def _drawing(self, seconds: float) -> bool:
        return bool(select.select([self._master], [], [], seconds)[0])

    def _read(self, seconds: float) -> bool:
        """Draw what the program writes within the time; False once it has closed the terminal."""
        if not self._drawing(seconds):
            return True
        try:
            written = os.read(self._master, 1 << 16)
        except OSError as error:
            if error.errno == errno.EIO:
                return False
            raise
        self._stream.feed(written)
        return bool(written)
