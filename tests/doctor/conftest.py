"""A host's node with all that it can have, once for root and once for an ordinary user, to be damaged and mended."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from simnode.cli.doctor import doctor
from simnode.doctor.view import CDI
from tests.agent_host.running import PATIENCE_S, HostRoot
from tests.conftest import ORDINARY
from tests.standing.conftest import nodes, refused, runner, scratch

__all__ = ["nodes", "refused", "runner", "scratch"]

USERS = ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]
UUID = "12345678-1234-4234-8234-123456789abc"
MIG = "mig:\n  gpus:\n    - {index: 0, gpu_instances: [{profile: 1g.10gb, count: 2}]}\n"


@dataclass(frozen=True)
class Host:
    """A host root with an agent that repairs nothing by itself."""

    root: HostRoot

    def doctor(self, *words: str) -> tuple[int, Any]:
        """The exit code of `simnode doctor --json WORDS`, and what it printed."""
        process = self.root.command("doctor", "--host-root", self.root.root, "--json", *words)
        out, said = process.communicate(timeout=PATIENCE_S)
        assert said == ""
        return process.returncode, json.loads(out)

    def findings(self, *words: str) -> list[tuple[str, str]]:
        """Where something is wrong, and what."""
        code, told = self.doctor(*words)
        found = [(finding["at"], finding["found"]) for finding in told["findings"]]
        assert (code, told["ok"]) == ((1, False) if found else (0, True))
        return found

    def judged(self) -> list[tuple[str, str]]:
        """The same for all consumers, asked in this process, by whoever runs the tests."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = doctor(None, self.root.root, CDI, (), as_json=True)
        found = [(finding["at"], finding["found"]) for finding in json.loads(out.getvalue())["findings"]]
        assert code == bool(found)
        return found

    def path(self, path: str) -> Path:
        """An absolute path of the host, as we see it."""
        return self.root.root / path.removeprefix("/")


@pytest.fixture(scope="module", params=USERS)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A node of two GPUs with all that it can have: partitions, IMEX, a fabric manager, a topology document."""
    uid = 0 if request.param == "root" else ORDINARY if os.geteuid() == 0 else os.geteuid()
    scratch = Path(tempfile.mkdtemp(prefix="simnode-doctor-"))
    for name in ("var/lib", "run", "proc", "dev", "etc"):
        (scratch / "root" / name).mkdir(parents=True)
    (scratch / "root/proc/version").write_text("Linux version 6.1\n")
    board = Path(__file__).parents[2] / "src/simnode/profile/boards/h100.yaml"
    (scratch / "config.yaml").write_text(board.read_text() + MIG)
    (scratch / "topology.yaml").write_text(
        f"version: 1\ndomains: [{{name: d, uuid: {UUID}, cliques: [{{id: 0, nodes: [n]}}]}}]\n"
    )
    if os.geteuid() == 0:
        for path in (scratch, *scratch.rglob("*")):
            os.chown(path, uid, uid)
    root = HostRoot(scratch / "root", uid, uuid.uuid4().hex)
    topology = ("--topology", scratch / "topology.yaml")
    fabric = ("--imex", "--fabricmanager-state-dir", "/var/lib/fabric")
    try:
        root.ready(root.agent("--resync-interval", "0", "--gpus", "2", *topology, *fabric))
        yield Host(root)
    finally:
        root.clean_up()
        shutil.rmtree(scratch)
