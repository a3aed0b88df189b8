"""Where namespaces are refused: what still works, what is said, and that a killed run is swept by the next."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from simnode.sandbox.directory import locked_directory, place
from tests.sandbox.conftest import refusing
from tests.sandbox.running import REFUSING, SIMNODE, Runner


@dataclass(frozen=True)
class Ended:
    """A run without namespaces that ended: how, where it was started, and what was left there."""

    done: subprocess.CompletedProcess[str]
    scratch: Path
    left: tuple[str, ...]


@pytest.fixture(scope="module")
def ended(uid: int) -> Ended:
    """One of three GPUs, whose command looks about."""
    look = "pwd; ls -d $XDG_RUNTIME_DIR/simnode/*; nvidia-smi -L; exit 3"
    with refusing(uid) as runner:
        done = runner.run("run", "--gpus", "3", "--", "sh", "-c", look)
        return Ended(done, runner.scratch, tuple(path.name for path in runner.scratch.iterdir()))


def _left(runner: Runner) -> list[Path]:
    return list((runner.scratch / "simnode").glob("*"))


def test_one_line_says_what_is_lost(ended: Ended) -> None:
    """The reason and the loss, and nothing else."""
    (line,) = ended.done.stderr.splitlines()
    assert line.startswith("simnode: no namespaces (unshare: Operation not permitted): ")
    assert "/dev/nvidia*" in line


@pytest.mark.either_user
def test_root_that_the_command_does_not_get_is_said_to_be_lost(refused: Runner) -> None:
    """In the same line; who is root has lost nothing."""
    done = refused.run("run", "--gpus", "1", "--root", "--", "id", "-u")
    assert done.stdout == f"{refused.uid}\n"
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"; --root does nothing, and the command stays uid {refused.uid}") == (refused.uid != 0)


def test_environment_leads_to_the_node(ended: Ended) -> None:
    """nvidia-smi by PATH, the library by LD_LIBRARY_PATH, the image by SIMNODE_IMAGE."""
    assert ended.done.stdout.count("GPU ") == 3


def test_exit_code_and_directory(ended: Ended) -> None:
    """As in namespaces; and the node root, which was there, is gone afterwards."""
    assert ended.done.returncode == 3
    directory, node_root, *_ = ended.done.stdout.splitlines()
    assert directory == str(ended.scratch)
    assert node_root.startswith(f"{ended.scratch}/simnode/")
    assert ended.left == ()


@pytest.mark.either_user
def test_killed_run_is_swept_by_the_next(refused: Runner) -> None:
    """Its agent and its command die with it, its directory goes with the next run."""
    refused.sleeping().kill()
    assert refused.vanished()
    (left,) = _left(refused)
    assert refused.run("run", "--", "true").returncode == 0
    assert not left.exists()


@pytest.mark.either_user
def test_running_node_is_not_swept(refused: Runner) -> None:
    """Two runs of one user stand beside each other."""
    first = refused.sleeping()
    (mine,) = _left(refused)
    assert refused.run("run", "--", "true").returncode == 0
    assert (mine / "driver/usr/bin/nvidia-smi").exists()
    first.terminate()
    assert first.wait() == 143


@pytest.mark.either_user
def test_several_runs_at_once(refused: Runner) -> None:
    """Making, sweeping and removing directories do not get into each other's way."""
    runs = [refused.start("run", "--gpus", "1", "--", "nvidia-smi", "-L") for _ in range(4)]
    assert [run.wait() for run in runs] == [0, 0, 0, 0]
    assert not (refused.scratch / "simnode").exists()


def test_unreadable_directories_are_removed(refused: Runner) -> None:
    """Whatever the command made of the node, its directory goes, and that of a killed run too."""
    if refused.uid == 0:
        pytest.skip("nothing is unreadable to root")
    spoil = "cd $XDG_RUNTIME_DIR/simnode/*; mkdir -p a/b; chmod 0 a/b; chmod 500 a"
    assert refused.run("run", "--", "sh", "-c", spoil).returncode == 0
    assert not (refused.scratch / "simnode").exists()
    killed = refused.start("run", "--", "sh", "-c", f"{spoil}; echo running; exec sleep 1000")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "running\n"
    killed.kill()
    assert refused.vanished()
    assert refused.run("run", "--", "true").returncode == 0
    assert not (refused.scratch / "simnode").exists()


@pytest.mark.either_user
def test_node_in_a_node_shows_its_own_devices(runner: Runner) -> None:
    """What /dev holds is the outer node's, and says nothing of the inner one's."""
    inner = (*REFUSING, *SIMNODE, "run", "--gpus", "5", "--", "nvidia-smi", "-L")
    done = runner.run("run", "--gpus", "3", "--", *inner)
    assert len(done.stdout.splitlines()) == 5, done.stderr


@pytest.mark.parametrize("case", ["open to others", "a link"])
def test_place_of_somebody_else_is_left_alone(tmp_path: Path, case: str) -> None:
    """In /tmp anybody can make a directory under our name: each run then has one of its own beside it."""
    above, uid = tmp_path / "simnode", tmp_path.stat().st_uid
    if case == "a link":
        above.symlink_to(tmp_path)
    else:
        above.mkdir(mode=0o755)
    killed = tmp_path / "simnode-killed"
    (killed / "run-left").mkdir(parents=True)
    killed.chmod(0o700)
    before = sorted(above.iterdir())
    with locked_directory(above, uid) as mine:
        assert mine.parent.parent == tmp_path
        assert mine.parent.stat().st_mode & 0o777 == 0o700
        assert mine.parent != above
    assert sorted(path for path in tmp_path.iterdir()) == [above]
    assert case == "a link" or sorted(above.iterdir()) == before


@pytest.mark.parametrize(
    ("runtime", "below"),
    [
        pytest.param("", "simnode-{uid}", id="unset"),
        pytest.param("relative", "simnode-{uid}", id="not absolute"),
        pytest.param("{tmp}/missing", "simnode-{uid}", id="missing"),
        pytest.param("{tmp}", "simnode", id="a runtime directory"),
        pytest.param("{tmp}/a:b", "simnode-{uid}", id="a colon"),
        pytest.param("{tmp}/a;b", "simnode-{uid}", id="a semicolon"),
        pytest.param("{tmp}/$LIB", "simnode-{uid}", id="a dollar"),
    ],
)
def test_place_follows_the_runtime_directory(tmp_path: Path, runtime: str, below: str) -> None:
    """XDG_RUNTIME_DIR if it can be used, else a directory by uid below the temporary one."""
    uid = tmp_path.stat().st_uid
    for name in ("a:b", "a;b", "$LIB"):
        (tmp_path / name).mkdir()
    found = place({"XDG_RUNTIME_DIR": runtime.format(tmp=tmp_path)}, uid, temporary=tmp_path)
    assert found == tmp_path / below.format(uid=uid)
