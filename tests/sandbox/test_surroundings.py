"""Machines that are not quite like this one: masked /proc, a chroot, closed descriptors."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess

import pytest

from simnode.sandbox.installed import init_program
from simnode.sandbox.machine import survey
from simnode.sandbox.surroundings import inside
from tests.conftest import ORDINARY
from tests.sandbox.running import SIMNODE, Runner

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can build these surroundings")
RUN = shlex.join((*SIMNODE, "run", "--gpus", "1", "--"))


def _prepared(runner: Runner, *steps: str) -> subprocess.Popen[str]:
    """A shell as root in a mount namespace of its own, marked; `$DROP` becomes the runner's uid."""
    drop = f"setpriv --reuid {runner.uid} --regid {runner.uid} --clear-groups --"
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-ec", "\n".join(steps)],
        env={**runner.environ(), "DROP": drop},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runner.started.append(process)
    return process


@as_root
class TestMaskedProc:
    """Where an ordinary user gets no fresh /proc there is no pid namespace, and the node stands all the same."""

    MASK = "awk '/ - proc / && $5 != \"/proc\" {print $5}' /proc/self/mountinfo | xargs -r umount -l\n" + (
        "mount -t tmpfs none /proc/tty"
    )
    DAEMON = "setsid sleep 1000 >/dev/null 2>&1 & sleep 0.1"

    @pytest.fixture
    def uid(self) -> int:
        """Root always gets a fresh /proc."""
        return ORDINARY

    def test_node_stands(self, runner: Runner) -> None:
        """Its library is found, its code comes through, and a daemon is killed (the runner's guard)."""
        command = f"echo $$; env -i /usr/bin/nvidia-smi -L; {self.DAEMON}; exit 3"
        run = _prepared(runner, self.MASK, f"exec $DROP {RUN} sh -c {shlex.quote(command)}")
        out, err = run.communicate(timeout=30)
        assert (run.returncode, err) == (3, "")
        pid, gpu = out.splitlines()
        assert int(pid) > run.pid
        assert gpu.startswith("GPU 0: ")

    def test_killed_launcher_takes_the_node_along(self, runner: Runner) -> None:
        """init notices, and kills what shares its mounts."""
        command = f"{self.DAEMON}; echo running; exec sleep 1000"
        run = _prepared(runner, self.MASK, f"exec $DROP {RUN} sh -c {shlex.quote(command)}")
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        run.kill()
        assert runner.vanished()

    def test_killed_init_ends_the_run(self, runner: Runner) -> None:
        """The launcher kills what the command has left, since nobody else is there to do it."""
        command = f"{self.DAEMON}; echo running; sleep 1000; true"
        run = _prepared(runner, self.MASK, f"exec $DROP {RUN} sh -c {shlex.quote(command)}")
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        os.kill(runner.one(init_program()), signal.SIGKILL)
        assert run.wait() == 137
        assert runner.vanished()

    def test_daemon_in_mounts_of_its_own_is_killed(self, runner: Runner) -> None:
        """It does not share the node's mounts, but descends from the command (the runner's guard)."""
        command = "setsid unshare -Ur --mount sleep 1000 >/dev/null 2>&1 & sleep 0.3; exit 3"
        run = _prepared(runner, self.MASK, f"exec $DROP {RUN} sh -c {shlex.quote(command)}")
        out, err = run.communicate(timeout=30)
        assert (run.returncode, out, err) == (3, "", "")


@as_root
def test_in_a_chroot(runner: Runner) -> None:
    """Root's node stands in a chroot and its command stays there; an ordinary user's falls back, also there."""
    run = _prepared(
        runner,
        "cd $XDG_RUNTIME_DIR && mkdir new real && mount --rbind / new",
        "mount -t tmpfs none real && touch real/outside",
        f"exec /usr/sbin/chroot new $DROP {RUN} sh -c 'nvidia-smi -L; ls -A $XDG_RUNTIME_DIR/real'",
    )
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0, err
    assert out.startswith("GPU 0: ")
    assert "outside" not in out
    assert len(err.splitlines()) == (0 if runner.uid == 0 else 1)


@as_root
def test_mounts_below_the_overlays_show(runner: Runner) -> None:
    """Root's node has them where they were; an ordinary user cannot have them, and one line names the first."""
    gconv = f"{survey().library_directory}/gconv"
    run = _prepared(
        runner,
        "cd $XDG_RUNTIME_DIR && mkdir tree && echo program >file && echo inner >tree/file && chmod -R a+rX .",
        f"mount --bind tree {gconv} && mount -t tmpfs none {gconv} && echo top >{gconv}/file",
        "mount --bind file /usr/bin/yes",
        f"exec $DROP {RUN} sh -c 'head -n1 /usr/bin/yes {gconv}/file; nvidia-smi -L; exit 7'",
    )
    out, err = run.communicate(timeout=30)
    assert run.returncode == 7, err
    assert "program" in out
    assert "top" in out
    assert "GPU 0: " in out
    assert [gconv in line for line in err.splitlines()] == ([] if runner.uid == 0 else [True])


@pytest.mark.parametrize(
    ("under", "said"),
    [
        pytest.param(("prlimit", "--nofile=8"), "ulimit -n", id="too few files"),
        pytest.param(("setpriv", "--ruid", str(ORDINARY)), "effective", id="two users", marks=as_root),
    ],
)
@pytest.mark.parametrize("uid", [os.geteuid()])
def test_unfit_caller_is_told_in_one_line(runner: Runner, under: tuple[str, ...], said: str) -> None:
    """Before anything is started."""
    done = runner.run("run", "--", "true", under=under)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: ")
    assert said in line


@pytest.mark.either_user
def test_way_to_another_node_is_not_handed_down(runner: Runner) -> None:
    """The node at the standard places is the command's, whatever image the caller had been led to."""
    other = ("env", "SIMNODE_IMAGE=/nonexistent", "SIMNODE_DEVICES=all")
    done = runner.run("run", "--gpus", "2", "--", "nvidia-smi", "-L", under=other)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stdout


def test_nameless_entry_of_the_environment_is_dropped() -> None:
    """A program may be given one, and can give it to none that Python starts."""
    assert inside({"": "x", "A": "b", "SIMNODE_IMAGE": "/x"}) == {"A": "b"}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
@pytest.mark.either_user
def test_closed_descriptor(runner: Runner, closed: str) -> None:
    """A standard descriptor that is closed hinders nothing."""
    script = f"{RUN} sh -c 'exit 6' {closed}"
    done = subprocess.run(
        ["sh", "-c", script], env=runner.environ(), cwd="/", capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 6, done.stderr
