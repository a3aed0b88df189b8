"""A local node: from outside by its name, from inside, and where namespaces are refused; and what is no node at all."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from simnode.doctor import CONSUMERS, of_host
from tests.sandbox.running import SIMNODE, Runner
from tests.standing.standing import refuse, succeed

DOCTOR = shlex.join([*SIMNODE, "doctor", "--json"])


def told(runner: Runner, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and findings of `simnode doctor`."""
    done = runner.run("doctor", "--json", *words)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)["findings"]


def test_a_standing_node_from_outside_and_inside(nodes: Runner) -> None:
    """Nothing is wrong; what is broken inside is seen from outside, once."""
    succeed(nodes, "up", "--name", "lab", "--gpus", "2", "--board", "a100")
    assert succeed(nodes, "doctor", "--name", "lab") == f"node lab: nothing wrong for {', '.join(CONSUMERS)}\n"
    assert told(nodes, "--name", "lab", "gfd") == (0, [])
    inside = succeed(nodes, "exec", "--name", "lab", "--", *shlex.split(DOCTOR))
    assert json.loads(inside) == {"node": "this node", "ok": True, "consumers": list(CONSUMERS), "findings": []}
    succeed(nodes, "fault", "inject", "--name", "lab", "--gpu", "0", "lost")
    code, (finding,) = told(nodes, "--name", "lab")
    assert (code, finding["found"]) == (1, "GPU 0: GPU is lost")


def test_damage_in_a_standing_node(nodes: Runner) -> None:
    """A library's link that is gone."""
    succeed(nodes, "up", "--gpus", "2")
    root = Path(
        succeed(nodes, "exec", "--", "sh", "-c", "ls -d /usr/lib*/simnode /usr/lib/*/simnode 2>&-; true").split()[0]
    )
    link = root / "driver/usr/lib64/libnvidia-ml.so.1"
    process = next(pid for pid, line in nodes.processes().items() if "simnode.sandbox.agent" in line)
    seen = Path(f"/proc/{process}/root{link}")
    seen.unlink()
    code, (finding,) = told(nodes)
    assert (code, finding["at"], finding["found"]) == (1, str(link), "is missing")


def test_a_node_beside_the_standard_places(refused: Runner) -> None:
    """Where namespaces are refused: what such a node cannot have is not missing."""
    done = refused.run("run", "--gpus", "2", "--", *shlex.split(DOCTOR))
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


REFUSED = {
    "unknown consumer": (("gdf",), f"'gdf' is no consumer that simnode knows: want {', '.join(CONSUMERS)}"),
    "unknown node": (("--name", "nobody"), "no node nobody stands: `simnode ls` lists those that do"),
    "no host": (("--host-root", "/nonexistent"), "--host-root /nonexistent: is no directory"),
    "no path": (("--host-root", "/" + "a" * 300), f"--host-root /{'a' * 300}: File name too long"),
    "both": (("--name", "x", "--host-root", "/"), "--name and --host-root exclude each other"),
}


@pytest.mark.parametrize(("words", "line"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_told_exits_2(runner: Runner, words: tuple[str, ...], line: str) -> None:
    """One line says what would be right."""
    assert refuse(runner, 2, "doctor", *words).startswith(line)


def test_a_host_without_a_node_is_one_finding(runner: Runner) -> None:
    """Not one for each thing that is missing."""
    code, (finding,) = told(runner, "--host-root", str(runner.scratch))
    assert (code, finding["at"], finding["found"]) == (1, "/var", "is missing")
    assert finding["consumers"] == list(CONSUMERS)


def test_links_of_a_host_are_followed_below_its_root(tmp_path: Path) -> None:
    """An absolute one too, and none leads out."""
    (tmp_path / "run/cdi").mkdir(parents=True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "out").symlink_to("../../../../etc/hostname")
    view = of_host(str(tmp_path))
    assert view.reach("/var/run/cdi").path == "/run/cdi"
    assert (view.reach("/out").path, view.reach("/out").fault) == ("/etc", "is missing")
