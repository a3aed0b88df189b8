"""Times of changes to a running node, taken inside it: python -m bench.changes, prints four numbers in milliseconds.

The 99th percentile of a change of one GPU through the socket, and of the whole command over the bare interpreter's; of
the time from publishing an XID to when each of four waiting processes has it; and the median of the bare interpreter.
After every change the value is read through NVML, in this process, which had it open before. XIDs go into an image of
this program's own: what an agent does before it publishes is in the times of the changes already.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.measure import ROOT, SIMNODE, Failed
from simnode.control_client import call
from simnode.nvml.cells import IMAGE
from simnode.nvml.image import Publisher, encode
from simnode.profile import Options, compile_state, load_board
from simnode.sandbox.standing import here

CHANGES, COMMANDS, STARTS, XIDS, WAITERS = 500, 150, 51, 50, 4
GPU = 3
XID_EVENT = 0x8  # nvmlEventTypeXidCriticalError (nvml.h)
LIBRARY = "libnvidia-ml.so.1"


def percentile_99(times: Sequence[float]) -> float:
    """The 99th percentile; 50 times at least."""
    return statistics.quantiles(times, n=100)[98]


def main() -> None:
    """Measure, one kind after the other."""
    socket = here(os.environ)
    if socket is None:
        raise Failed("not in a node")
    nvml = ctypes.CDLL(LIBRARY)
    device = ctypes.c_void_p()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(GPU, ctypes.byref(device)):
        raise Failed("no NVML in this node")

    def temperature() -> int:
        value = ctypes.c_uint()
        nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(value))
        return value.value

    def assignment(degrees: int) -> str:
        return f"thermal.temperature_gpu_c={degrees}"

    def through_socket(degrees: int) -> None:
        call(socket, {"verb": "set", "gpu": GPU, "assignments": [assignment(degrees)]})

    def through_command(degrees: int) -> None:
        subprocess.run([SIMNODE, "set", "--gpu", str(GPU), assignment(degrees)], check=True)

    bare = statistics.median(_taken(lambda: subprocess.run([sys.executable, "-c", ""], check=True), STARTS))
    changes = _seen(through_socket, temperature, CHANGES)
    commands = _seen(through_command, temperature, COMMANDS)
    print(percentile_99(changes), percentile_99(commands) - bare, percentile_99(_wakes()), bare)


def _taken(act: Callable[[], object], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def _seen(change: Callable[[int], None], read: Callable[[], int], times: int) -> list[float]:
    taken = []
    for number in range(times):
        degrees = 40 + number % 40
        begun = time.perf_counter()
        change(degrees)
        taken.append((time.perf_counter() - begun) * 1000)
        if read() != degrees:
            raise Failed(f"a change to {degrees} degrees was answered, yet {read()} are read")
    return taken


def _wakes() -> list[float]:
    """Milliseconds from each publication to each waiter; a waiter prints the time.monotonic() of what it hears."""
    seconds = 3 + XIDS * 0.03
    words = [sys.executable, "-m", "tests.control.waiter", LIBRARY, str(seconds), str(GPU)]
    sent = []
    with tempfile.TemporaryDirectory() as directory:
        image = Path(directory) / "image"
        image.write_bytes(bytes(IMAGE.size))
        with Publisher(image) as publisher:
            publisher.publish(encode(compile_state(load_board("h100"), Options(), {})))
            environ = {**os.environ, "SIMNODE_IMAGE": str(image)}
            waiters = [
                subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
                for _ in range(WAITERS)
            ]
            for waiter in waiters:
                assert waiter.stdout is not None
                waiter.stdout.readline()
            for _ in range(XIDS):
                sent.append(time.monotonic())
                publisher.event(GPU, XID_EVENT, 31)
                time.sleep(0.02)
    taken = []
    for waiter in waiters:
        heard = [float(line.split()[1]) for line in waiter.communicate()[0].splitlines()]
        taken += [(at - begun) * 1000 for at, begun in zip(heard, sent, strict=True)]
    return taken


if __name__ == "__main__":
    main()
