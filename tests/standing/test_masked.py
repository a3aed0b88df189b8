"""Where an ordinary user gets no fresh /proc there is no pid namespace; a node that stays does so all the same."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from tests.conftest import ORDINARY
from tests.sandbox.running import SIMNODE, Runner

MASK = (
    "awk '/ - proc / && $5 != \"/proc\" {print $5}' /proc/self/mountinfo | xargs -r umount -l\n"
    "mount -t tmpfs none /proc/tty"
)


@pytest.fixture
def uid() -> int:
    """Root always gets a fresh /proc."""
    return ORDINARY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mask parts of /proc")
def test_node_stays_and_goes(runner: Runner) -> None:
    """`down` takes along what a command left behind: init kills what shares its mounts."""
    simnode = f"setpriv --reuid {runner.uid} --regid {runner.uid} --clear-groups -- {shlex.join(SIMNODE)}"
    script = f"""{MASK}
        {simnode} up --gpus 2
        {simnode} set --gpu 1 thermal.temperature_gpu_c=91
        {simnode} exec -- sh -c 'setsid sleep 1000 >/dev/null 2>&1 & nvidia-smi | grep -c " 91C "'
        {simnode} down
        {simnode} ls"""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script],
        env=runner.environ(),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    count, titles = done.stdout.splitlines()
    assert (count, titles.split()[0]) == ("1", "NAME")
    assert runner.processes() == {}
