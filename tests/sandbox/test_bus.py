"""The node's PCI bus in the machine's places: what stays of the machine, and what happens where it cannot be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sandbox.running import Runner, Shell

LOOK = 'for each in /sys/class/net/* /sys/block/*; do readlink -e "$each" >/dev/null || echo "$each"; done'
FUNCTIONS = "ls /sys/bus/pci/devices | wc -l"
HIDDEN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh")
LOST = "simnode: no node in /sys/devices (No such file or directory)"


def test_only_the_nodes_functions_are_on_the_bus(node: Shell) -> None:
    done = node.do(FUNCTIONS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


def test_the_machines_own_devices_can_be_reached_as_before(node: Shell) -> None:
    """A disk that is a PCI device is still found below its function; of the function nothing else is left."""
    done = node.do(LOOK)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    inside = node.do("cat /sys/devices/system/cpu/online; ls /sys/devices/virtual").stdout
    outside = "\n".join([Path("/sys/devices/system/cpu/online").read_text().strip(), *_names("/sys/devices/virtual")])
    assert inside == f"{outside}\n"


def test_nobody_changes_the_bus_by_writing(node: Shell) -> None:
    """Not even root; it is read-only, as all of /sys is in a node."""
    for path in ("/sys/bus/pci/devices/x", "/sys/devices/x", "/proc/bus/pci/x"):
        done = node.do(f"mkdir {path}")
        assert done.returncode == 1
        assert "Read-only file system" in done.stderr or "No such file" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /sys from a node")
def test_a_node_stands_without_its_bus_and_one_line_says_so(runner: Runner) -> None:
    if runner.uid != 0:
        pytest.skip("hiding /sys needs root")
    done = runner.run("run", "--", "nvidia-smi", "-L", under=HIDDEN)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 8)
    (line,) = done.stderr.splitlines()
    assert line.startswith(LOST)
    assert line.endswith(": who reads there sees this machine")


@pytest.mark.either_user
def test_without_namespaces_the_line_says_that_sys_is_the_machines(refused: Runner) -> None:
    done = refused.run("run", "--board", "t4", "--", "sh", "-c", FUNCTIONS)
    assert done.stdout == f"{len(_names('/sys/bus/pci/devices'))}\n"
    (line,) = done.stderr.splitlines()
    assert line.endswith("and /sys shows this machine's PCI bus")


def _names(directory: str) -> list[str]:
    return sorted(path.name for path in Path(directory).iterdir())
