"""Where namespaces are refused: what still works, what is said, and that a killed run is swept by the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.sandbox.directory import UnsafeDirectory, locked_directory, place
from tests.sandbox.running import Runner


def _left(runner: Runner) -> list[Path]:
    return list((runner.scratch / "simnode").glob("*"))


def test_one_line_says_what_is_lost(refused: Runner) -> None:
    """The reason and the loss, before the command's own output."""
    done = refused.run("run", "--", "true")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: no namespaces (unshare: Operation not permitted): ")
    assert "/dev/nvidia*" in line


def test_environment_leads_to_the_node(refused: Runner) -> None:
    """nvidia-smi by PATH, the library by LD_LIBRARY_PATH, the image by SIMNODE_IMAGE."""
    done = refused.run("run", "--gpus", "3", "--", "nvidia-smi", "-L")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_exit_code_and_directory(refused: Runner) -> None:
    """As in namespaces; and the node root is gone afterwards."""
    done = refused.run("run", "--", "sh", "-c", "pwd; ls -d $XDG_RUNTIME_DIR/simnode/*; exit 3")
    assert done.returncode == 3
    assert done.stdout.split()[0] == str(refused.scratch)
    assert len(done.stdout.split()) == 2
    assert not (refused.scratch / "simnode").exists()


def test_killed_run_is_swept_by_the_next(refused: Runner) -> None:
    """Its agent and its command die with it, its directory goes with the next run."""
    refused.sleeping().kill()
    assert refused.vanished()
    (left,) = _left(refused)
    assert refused.run("run", "--", "true").returncode == 0
    assert not left.exists()


def test_running_node_is_not_swept(refused: Runner) -> None:
    """Two runs of one user stand beside each other."""
    first = refused.sleeping()
    (mine,) = _left(refused)
    assert refused.run("run", "--", "true").returncode == 0
    assert (mine / "driver/usr/bin/nvidia-smi").exists()
    first.terminate()
    assert first.wait() == 143


@pytest.mark.parametrize("case", ["open to others", "a link"])
def test_place_of_somebody_else_is_refused(tmp_path: Path, case: str) -> None:
    """In /tmp anybody can make a directory under our name; we put nothing into it."""
    above, uid = tmp_path / "simnode", tmp_path.stat().st_uid
    if case == "a link":
        above.symlink_to(tmp_path)
    else:
        above.mkdir(mode=0o755)
    with pytest.raises(UnsafeDirectory, match="mode 0700"), locked_directory(above, uid):
        pass


@pytest.mark.parametrize(
    ("runtime", "below"),
    [
        pytest.param("", "simnode-{uid}", id="unset"),
        pytest.param("relative", "simnode-{uid}", id="not absolute"),
        pytest.param("{tmp}/missing", "simnode-{uid}", id="missing"),
        pytest.param("{tmp}", "simnode", id="a runtime directory"),
    ],
)
def test_place_follows_the_runtime_directory(tmp_path: Path, runtime: str, below: str) -> None:
    """XDG_RUNTIME_DIR if it can be used, else a directory by uid below the temporary one."""
    uid = tmp_path.stat().st_uid
    found = place({"XDG_RUNTIME_DIR": runtime.format(tmp=tmp_path)}, uid, temporary=tmp_path)
    assert found == tmp_path / below.format(uid=uid)
