"""The PCI bus of a node whose GPUs come and go: at every look it has just those of NVML."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.sandbox.running import Runner
from tests.standing.standing import standing, succeed

GPUS = "cat /sys/bus/pci/devices/*/class 2>/dev/null | grep -c 0x030200; nvidia-smi -L | grep -c '^GPU'; true"
WATCH = """
import os, sys, time
place = "/sys/bus/pci/devices"
while True:
    for name in os.listdir(place):
        try:
            open(f"{place}/{name}/vendor").read()
        except FileNotFoundError:
            if os.path.lexists(f"{place}/{name}") and not os.path.exists(f"{place}/{name}"):
                time.sleep(0.05)
                if os.path.lexists(f"{place}/{name}") and not os.path.exists(f"{place}/{name}"):
                    print("dangling", name, flush=True)
"""


@pytest.fixture(scope="module")
def node(sharing: Runner) -> Iterator[Runner]:
    """A node of four GPUs, which each test leaves as it was."""
    with standing(sharing, "--board", "t4") as node:
        yield node


def test_gpus_come_and_go_on_the_bus_as_in_nvml(node: Runner) -> None:
    for count in (2, 0, 4):
        succeed(node, "set", f"system.num_devices={count}")
        assert succeed(node, "exec", "--", "sh", "-c", GPUS).split() == [str(count), str(count)]


def test_a_process_that_watches_never_finds_a_link_that_leads_nowhere(node: Runner) -> None:
    watching = node.start("exec", "--", sys.executable, "-c", WATCH)
    for count in (2, 0, 4, 1, 4):
        succeed(node, "set", f"system.num_devices={count}")
    assert watching.poll() is None
    watching.terminate()
    output, errors = watching.communicate(timeout=20)
    assert (output, errors) == ("", "")


def test_a_fallen_gpu_answers_again_once_it_is_healed(node: Runner) -> None:
    config = "od -An -tx1 -N2 /sys/bus/pci/devices/0000:3b:00.0/config"
    read: list[str] = []
    for words in ((), ("fault", "inject", "--gpu", "1", "fallen_off_bus"), ("fault", "clear", "--gpu", "1")):
        if words:
            succeed(node, *words)
        read.append(succeed(node, "exec", "--", "sh", "-c", config).strip())
    assert read == ["de 10", "ff ff", "de 10"]
