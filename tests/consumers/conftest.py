"""A node to run real programs in: as root and as an ordinary user, in namespaces and where they are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sandbox.refusing import refuse_namespaces
from tests.users import as_user

SIMNODE = Path(sys.executable).parent / "simnode"


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
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
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


@pytest.fixture
def namespaced(uid: int) -> Node:
    """A node in namespaces."""
    return Node(uid)


@pytest.fixture(params=[False, True], ids=["namespaces", "fallback"])
def node(uid: int, request: pytest.FixtureRequest) -> Node:
    """A node in namespaces, and one without."""
    return Node(uid, fallback=request.param)


@pytest.fixture(autouse=True)
def machine_untouched() -> Iterator[None]:
    """After every run the machine has no mount of ours, and the NVIDIA devices that it had before."""

    def seen() -> tuple[list[str], list[Path], bool]:
        mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "simnode" in line]
        return mounts, sorted(Path("/dev").glob("nvidia*")), Path("/proc/driver/nvidia").exists()

    before = seen()
    yield
    assert seen() == before
