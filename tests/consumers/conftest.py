"""A node to run real programs in: as root and as an ordinary user, in namespaces and where they are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ORDINARY
from tests.consumers.terminal import Terminal
from tests.sandbox.refusing import refuse_namespaces
from tests.users import as_user

SIMNODE = Path(sys.executable).parent / "simnode"
USERS = {"root": 0, "ordinary": ORDINARY} if os.geteuid() == 0 else {"ordinary": os.geteuid()}
# Without namespaces there is nothing that one user has and another has not: tests/sandbox/test_fallback.py.
KINDS = [*((user, False) for user in USERS), (next(iter(USERS)), True)]
ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
SEVERAL = Path(__file__).with_name("several.py")


@dataclass(frozen=True)
class Ended:
    """How one of several commands in a node ended."""

    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Node:
    """Runs commands by `simnode run` under one uid."""

    uid: int
    fallback: bool = False

    def run(
        self, *command: str | Path, options: tuple[str, ...] = ("--board", "h100")
    ) -> subprocess.CompletedProcess[str]:
        """`simnode run OPTIONS -- COMMAND`, from / with a bare environment; 30 s at most."""
        return subprocess.run(
            [SIMNODE, "run", *options, "--", *command],
            **as_user(self.uid),
            cwd="/",
            env=ENVIRON,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            preexec_fn=refuse_namespaces if self.fallback else None,
        )

    def output(self, *command: str | Path, options: tuple[str, ...] = ("--board", "h100")) -> str:
        """Standard output of a command that has to succeed; nothing but the fallback's one line may be on the other."""
        done = self.run(*command, options=options)
        assert done.returncode == 0, done.stderr + done.stdout
        assert len(done.stderr.splitlines()) == self.fallback, done.stderr
        return done.stdout

    def terminal(
        self, *command: str | Path, options: tuple[str, ...] = ("--board", "h100"), rows: int = 50, columns: int = 160
    ) -> Terminal:
        """A command in a node, on a terminal of its own."""
        words: list[str | Path] = [SIMNODE, "run", *options, "--", *command]
        return Terminal(words, ENVIRON, as_user(self.uid), rows=rows, columns=columns)

    def several(
        self, commands: Sequence[Sequence[str | Path]], options: tuple[str, ...] = ("--board", "h100"), at_once: int = 8
    ) -> list[Ended]:
        """Several commands in one node, `at_once` at a time: how each ended, in their order."""
        listed = json.dumps([[str(word) for word in command] for command in commands])
        ended = json.loads(self.output(sys.executable, SEVERAL, str(at_once), listed, options=options))
        return [Ended(*one) for one in ended]


@pytest.fixture(scope="module")
def ordinary() -> Node:
    """A node in namespaces, of an ordinary user, that a module's tests may share."""
    return Node(USERS["ordinary"])


@pytest.fixture(
    scope="module",
    params=KINDS,
    ids=lambda one: f"{'fallback' if one[1] else 'namespaces'}-{one[0]}",
)
def anywhere(request: pytest.FixtureRequest) -> Node:
    """A node of each kind of user, and one without namespaces, that a module's tests may share."""
    user, fallback = request.param
    return Node(USERS[user], fallback)


@pytest.fixture
def namespaced(uid: int) -> Node:
    """A node in namespaces."""
    return Node(uid)


@pytest.fixture(autouse=True)
def machine_untouched() -> Iterator[None]:
    """After every run the machine has no mount of ours, and the NVIDIA devices that it had before."""

    def seen() -> tuple[list[str], list[Path], bool]:
        mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "simnode" in line]
        return mounts, sorted(Path("/dev").glob("nvidia*")), Path("/proc/driver/nvidia").exists()

    before = seen()
    yield
    assert seen() == before
