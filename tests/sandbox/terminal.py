"""A terminal with an interactive shell in it, typed at and read like by a person."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.users import as_user

PATIENCE_S = 20.0
CTRL_C, CTRL_Z = "\x03", "\x1a"


class Terminal:
    """An interactive bash, leader of a session of its own, under `uid`."""

    def __init__(self, uid: int, environ: Mapping[str, str], directory: Path) -> None:
        self._master, slave = pty.openpty()
        self._seen = ""
        if os.geteuid() == 0:
            os.fchown(slave, uid, uid)
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            **as_user(uid),
            env={**environ, "PS1": "outer> ", "TERM": "dumb", "LC_ALL": "C"},
            cwd=directory,
        )
        os.close(slave)

    def write(self, text: str) -> None:
        """Write `text`; a line needs its end."""
        os.write(self._master, text.encode())

    def expect(self, pattern: str) -> str:
        """Read until `pattern` has come since the last match, and return what it matched."""
        deadline = time.monotonic() + PATIENCE_S
        while (match := re.search(pattern, self._seen)) is None:
            assert time.monotonic() < deadline, f"{pattern!r} did not come, but {self._seen!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self._seen += os.read(self._master, 4096).decode(errors="replace")
        self._seen = self._seen[match.end() :]
        return match.group()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)
