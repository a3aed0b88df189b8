"""Injected XIDs reach every process that waits for them, once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from simnode.nvml.cells import IMAGE as LAYOUT
from simnode.nvml.image import Publisher
from simnode.profile import Options, compile_state, load_board, load_text
from simnode.simulators.gpudriver.events import Events
from simnode.simulators.gpudriver.kernellog import NO_KERNEL, KernelLog
from tests.control.nodes import IMAGE, Node, running

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src/simnode/_native/libnvidia-ml.so"


@contextmanager
def waiter(node: Node, *indices: int, seconds: float = 2.0) -> Iterator[subprocess.Popen[str]]:
    """A process that has registered for these GPUs and waits."""
    environ = {**os.environ, "SIMNODE_IMAGE": str(node.root / IMAGE)}
    words = [sys.executable, "-m", "tests.control.waiter", str(LIBRARY), str(seconds), *map(str, indices)]
    with subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def heard(process: subprocess.Popen[str]) -> list[tuple[int, float]]:
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return [(int(line.split()[0]), float(line.split()[1])) for line in output.splitlines()]


def xids(process: subprocess.Popen[str]) -> list[int]:
    return [xid for xid, _ in heard(process)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("events") / "node") as made:
        yield made


def test_every_waiter_hears_it_once_and_those_of_other_gpus_do_not(node: Node) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(waiter(node, 3)) for _ in range(3)]
        other = stack.enter_context(waiter(node, 4))
        started = time.monotonic()
        node.call("fault-inject", gpu=3, mode="fallen_off_bus")
        answered = time.monotonic()
        times = [heard(process) for process in waiting]
        assert [[xid for xid, _ in events] for events in times] == [[79]] * 3
        assert all(started < at < answered + 0.5 for ((_, at),) in times)
        assert heard(other) == []
    node.call("reset")


def test_the_same_fault_again_is_another_event(node: Node) -> None:
    with waiter(node, 1) as process:
        for _ in range(3):
            node.call("fault-inject", gpu=1, xid=31)
        assert xids(process) == [31, 31, 31]
    node.call("reset")


def test_other_changes_do_not_raise_it_again(node: Node) -> None:
    with waiter(node, 1) as process:
        node.call("fault-inject", gpu=1, xid=31)
        node.set(1, "utilization.gpu=50")
        node.set("all", "utilization.gpu=40")
        node.call("fault-clear", gpu=1)
        assert xids(process) == [31]


def test_a_fault_that_is_written_by_hand_is_raised_too(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node, waiter(node, 0, 1) as process:
        (node.root / "state/overrides.yaml").write_text("devices: {'1': {failure: {mode: lost, xid: {code: 74}}}}")
        assert xids(process) == [74]


def test_an_agent_that_comes_back_does_not_raise_it_again(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(LAYOUT.size))
    document = load_text(load_board("h100").raw, "h100.yaml")
    failing = compile_state(document, Options(overrides=("failure.xid.code=79",)), {})
    healthy = compile_state(document, Options(), {})
    with Publisher(image) as publisher:
        Events(tmp_path, KernelLog(tmp_path, NO_KERNEL)).raise_new(failing, publisher)
        assert publisher.event(0, 0x8, 1) == 9
        Events(tmp_path, KernelLog(tmp_path, NO_KERNEL)).raise_new(failing, publisher)
        assert publisher.event(0, 0x8, 1) == 10
        Events(tmp_path, KernelLog(tmp_path, NO_KERNEL)).raise_new(healthy, publisher)
        Events(tmp_path, KernelLog(tmp_path, NO_KERNEL)).raise_new(failing, publisher)
        assert publisher.event(0, 0x8, 1) == 19
