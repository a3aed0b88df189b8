"""Drives `simnode run` from outside, and sees what it leaves behind.

Every process of a run carries a mark in its environment, so that a run is told from whatever else this machine does.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.users import as_user

SIMNODE = (sys.executable, "-P", "-m", "simnode")
REFUSING = (sys.executable, str(Path(__file__).with_name("refusing.py")))
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Runner:
    """Runs `simnode` as `uid`, marked, in `scratch` (a directory of that user's), with the runtime directory there."""

    uid: int
    scratch: Path
    mark: str
    refused: bool = False
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environ(self) -> dict[str, str]:
        """A bare environment, with the mark."""
        path = "/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": "/nonexistent", "XDG_RUNTIME_DIR": str(self.scratch), "SIMNODE_MARK": self.mark}

    def start(
        self, *words: str | Path, cwd: Path | None = None, under: Sequence[str] = (), stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        """`simnode WORDS`, with pipes; killed at the end of the test if need be; `under` executes it."""
        process = subprocess.Popen(
            [*under, *(REFUSING if self.refused else ()), *SIMNODE, *map(str, words)],
            **as_user(self.uid),
            cwd=cwd or self.scratch,
            env=self.environ(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(
        self, *words: str | Path, cwd: Path | None = None, under: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """`simnode WORDS` to its end."""
        process = self.start(*words, cwd=cwd, under=under)
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def sleeping(self) -> subprocess.Popen[str]:
        """A node whose command says that it runs, and then sleeps."""
        process = self.start("run", "--", "sh", "-c", "echo running; exec sleep 1000")
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "running\n", line + (process.stderr.read() if process.stderr else "")
        return process

    @contextmanager
    def shell(self, *options: str) -> Iterator[Shell]:
        """A node whose command is a shell that waits for what to run."""
        process = self.start("run", *options, "--", "sh", stdin=subprocess.PIPE)
        yield Shell(self, process)
        assert process.communicate(timeout=PATIENCE_S) == ("", "")
        assert process.returncode == 0

    def processes(self) -> dict[int, str]:
        """Pid and command line of everything that carries the mark and is no zombie."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (line := _marked(entry, self.mark)):
                found[int(entry.name)] = line
        return found

    def one(self, start: str, other_than: int = 0) -> int:
        """The pid of a process of the run whose command line starts so, once there is one."""

        def found() -> int:
            return next((p for p, line in self.processes().items() if line.startswith(start) and p != other_than), 0)

        return until(found)

    def vanished(self) -> bool:
        """True once no process of the run is left."""
        return until(lambda: not self.processes())

    def clean_up(self) -> None:
        """Kill what a failed test left, and close the pipes."""
        for process in self.started:
            process.kill()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.communicate(timeout=PATIENCE_S)


@dataclass(frozen=True)
class Shell:
    """The command of a node, for tests that share it: whatever it runs is a child of it, as it is of the launcher."""

    runner: Runner
    process: subprocess.Popen[str]

    def do(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run `command` by a shell of its own, without input, to its end; its output takes its way through files."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"sh -c {shlex.quote(command)} </dev/null >shell.out 2>shell.err; echo $?\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        out, err = ((self.runner.scratch / name).read_text() for name in ("shell.out", "shell.err"))
        return subprocess.CompletedProcess(command, code, out, err)


def _marked(entry: Path, mark: str) -> str:
    try:
        if f"SIMNODE_MARK={mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
            return ""
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


T = TypeVar("T")


def until(probe: Callable[[], T]) -> T:
    """What `probe` answers, asked until it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := probe()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return answer
