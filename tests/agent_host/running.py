"""Drives `simnode agent` on a made-up host root from outside: starts it, asks it over HTTP, looks at what it did."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from simnode.cli import main
from simnode.control_client import connect
from tests.users import as_user

SIMNODE = (sys.executable, "-P", "-m", "simnode")
BOARD = Path(__file__).parents[2] / "src/simnode/profile/boards/h100.yaml"
PATIENCE_S = 30.0
WEEKDAYS = ("Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun ")
OUTLIVE = {
    "run/simnode/agent.lock",
    "run/simnode/staging.lock",
    "run/nvidia/driver",
    "var/lib/simnode/driver/config",
    "var/lib/simnode/driver/proc/driver",
    "var/lib/simnode/state/parents.json",
    "var/lib/simnode/state/parents-outside.json",
    "var/lib/simnode/state/generation",
    "var/lib/simnode/state/overrides.yaml",
    "var/lib/simnode/state/overrides.yaml.lock",
}
"""What an agent leaves on purpose: locks, the number of the State, overrides, and directories that containers mount."""

Found = tuple[object, ...]
Snapshot = dict[str, Found]
T = TypeVar("T")


def until(probe: Callable[[], T]) -> T:
    """What `probe` answers, asked until it is true; an OSError is no answer yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if answer := probe():
                return answer
        except OSError:
            pass
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


class _UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("simnode", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock: socket.socket = connect(self._path, PATIENCE_S)


def get(connection: http.client.HTTPConnection, page: str) -> tuple[int, str]:
    """Status and body of a page."""
    try:
        connection.request("GET", page)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@dataclass
class HostRoot:
    """A directory that looks like a host's root to an agent that runs as `uid`."""

    root: Path
    uid: int
    mark: str
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def node(self) -> Path:
        return self.root / "var/lib/simnode"

    @property
    def config(self) -> Path:
        return self.root.parent / "config.yaml"

    def environ(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "SIMNODE_MARK": self.mark}

    def command(self, *words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """`simnode WORDS`, with pipes; killed at the end of the test if need be."""
        process = subprocess.Popen(
            [*SIMNODE, *map(str, words)],
            **as_user(self.uid),
            cwd="/",
            env=self.environ() | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """`simnode WORDS` to its end: the exit code and what it said on standard error."""
        return self.end_of(self.command(*words, env=env))

    def forked(self, *words: str | Path) -> tuple[int, str]:
        """As `run`, in a fork of this process, which has imported everything: for what ends before it does anything."""
        with tempfile.TemporaryFile("w+") as said:
            pid = os.fork()
            if pid == 0:
                try:
                    os.dup2(said.fileno(), 2)
                    os.chdir("/")
                    if os.geteuid() == 0:
                        os.setgroups([])
                        os.setgid(self.uid)
                        os.setuid(self.uid)
                    os.environ.clear()
                    os.environ.update(self.environ())
                    sys.argv = ["simnode", *map(str, words)]
                    os._exit(main())
                finally:
                    os._exit(os.EX_SOFTWARE)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            said.seek(0)
            return code, said.read()

    def end_of(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for its own end: the exit code and what it said on standard error."""
        _, said = process.communicate(timeout=PATIENCE_S)
        return process.returncode, said

    def agent(self, *words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """An agent on this root, with a profile and no port unless WORDS say otherwise."""
        given: list[str | Path] = ["--host-root", self.root]
        if "--config" not in words and "SIMNODE_CONFIG" not in (env or {}):
            given += ["--config", self.config]
        if "--health-addr" not in words and "SIMNODE_HEALTH_ADDR" not in (env or {}):
            given += ["--health-addr", ""]
        return self.command("agent", *given, *words, env=env)

    def ready(self, process: subprocess.Popen[str]) -> subprocess.Popen[str]:
        """Wait until the agent is ready; it must not end meanwhile."""

        def asked() -> bool:
            if process.poll() is not None:
                assert process.stderr is not None
                raise AssertionError(f"the agent ended: exit {process.returncode}: {process.stderr.read()}")
            return self.ask("/readyz")[0] == 200

        until(asked)
        return process

    def end(self, process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait: the exit code and all that was logged."""
        process.send_signal(number)
        return self.end_of(process)

    def ask(self, page: str) -> tuple[int, str]:
        """A page of the agent, over its Unix socket."""
        return get(_UnixHTTP(self.node / "control/health.sock"), page)

    def told(self, page: str) -> dict[str, Any]:
        """A page that is a JSON object."""
        document: dict[str, Any] = json.loads(self.ask(page)[1])
        return document

    def metric(self, name: str) -> float:
        """A metric without labels."""
        lines = self.ask("/metrics")[1].splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))

    def screen(self) -> str:
        """What nvidia-smi shows of the node, the time of day left out."""
        program = self.node / "driver/usr/bin/nvidia-smi"
        shown = subprocess.run([program], capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout
        lines = [line for line in shown.splitlines() if not line.startswith(WEEKDAYS)]
        assert lines, "nvidia-smi shows nothing"
        return "\n".join(lines)

    def configure(self, text: str | bytes) -> None:
        """Replace the profile."""
        temporary = self.config.with_suffix(".tmp")
        temporary.write_bytes(text if isinstance(text, bytes) else text.encode())
        temporary.rename(self.config)

    def clean_up(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate(timeout=PATIENCE_S)


def snapshot(root: Path, *, contents: bool = True) -> Snapshot:
    """Everything below `root`: kind, mode, and a file's content, a link's target or a device's number."""
    found: Snapshot = {}
    for path in root.rglob("*"):
        status = path.lstat()
        name, mode = str(path.relative_to(root)), oct(status.st_mode)
        if stat.S_ISREG(status.st_mode):
            found[name] = (mode, path.read_bytes() if contents else status.st_size)
        elif stat.S_ISLNK(status.st_mode):
            found[name] = (mode, str(path.readlink()))
        elif stat.S_ISCHR(status.st_mode):
            found[name] = (mode, os.major(status.st_rdev), os.minor(status.st_rdev))
        else:
            found[name] = (mode,)
    return found


def staged(root: Path) -> Snapshot:
    """The wanted part of a host root: all but the agent's records and sockets, and what changes in the image."""
    whole = snapshot(root)
    for name in list(whole):
        if name.startswith(("var/lib/simnode/state/", "var/lib/simnode/control/")):
            del whole[name]
        elif "/driver/config/image." in name:
            whole[name] = (whole[name][0], len(bytes(whole[name][1])))  # type: ignore[call-overload]
    return whole


def without_what_outlives(found: Snapshot) -> Snapshot:
    """`found` less what an agent leaves on purpose, and the directories that hold nothing else."""
    outlive = OUTLIVE & found.keys()
    above = {str(parent) for name in outlive for parent in Path(name).parents}
    return {
        name: value
        for name, value in found.items()
        if name not in outlive
        and not (name in above and name.startswith(("var/lib/simnode", "run/simnode", "run/nvidia")))
    }
