"""Times of the stage wave: staging driver and PCI bus from nothing, and a wave that finds nothing to do.

python -m bench.wave        in mount namespaces of its own; prints medians, milliseconds: both without IMEX, and with
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import measure

RUNS = 7
A_WHILE = 0.05
"""Seconds: long enough for the next change of a file to get another ctime."""


def wave_times() -> tuple[float, ...]:
    """Milliseconds to stage 8 GPUs, and to find them staged, and both with all IMEX channels.

    What an ordinary user mounts stays in namespaces.
    """
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return tuple(map(float, measure.output(*unshare, sys.executable, "-m", "bench.wave").split()))


async def _waves(directory: str, *, real_nodes: bool, imex: bool) -> tuple[float, float]:
    from simnode.agent import Reports
    from simnode.host import Host
    from simnode.profile import Options, compile_state, load_board
    from simnode.sandbox.installed import native
    from simnode.simulators import Devices
    from simnode.simulators.gpudriver import DriverFiles, GPUDriver, machine_kernel
    from simnode.simulators.imex import IMEX, Software
    from simnode.simulators.pcibus import PCIBus
    from simnode.state import Facts

    state = compile_state(load_board("h100"), Options(), {"SIMNODE_IMEX": str(imex)}, generation=1)
    host = Host(directory, boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    files = DriverFiles(*(Path(native(name)).read_bytes() for name in ("libnvidia-ml.so", "nvidia-smi", "libcuda.so")))
    devices: Devices = "node" if real_nodes else "stand-in"
    kernel = machine_kernel()
    driver = GPUDriver(host, files, devices, kernel=kernel)
    software = Software(host.root, Reports().report, logging.getLogger())
    simulators = (driver, IMEX(host, devices, kernel.procfs, software), PCIBus(host))
    began = time.perf_counter()
    await asyncio.gather(*(simulator.stage(state, Facts()) for simulator in simulators))
    staged = time.perf_counter()
    await asyncio.sleep(A_WHILE)
    for simulator in simulators:
        await simulator.plan(state, Facts())
    settled = time.perf_counter()
    plans = [await simulator.plan(state, Facts()) for simulator in simulators]
    done = time.perf_counter()
    assert not any(plans)
    await asyncio.gather(*(simulator.discard() for simulator in simulators))
    return (staged - began) * 1000, (done - settled) * 1000


def main(real_nodes: bool) -> None:
    """Measure in a tmpfs, as a node's root is one."""
    times = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["mount", "-t", "tmpfs", "simnode", directory], check=True)
            waves = [asyncio.run(_waves(directory, real_nodes=real_nodes, imex=imex)) for imex in (False, True)]
            times.append([moment for wave in waves for moment in wave])
            subprocess.run(["umount", "--lazy", directory], check=True)
    print(*(round(statistics.median(column), 3) for column in zip(*times, strict=True)))


if __name__ == "__main__":
    main(real_nodes=Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"])
