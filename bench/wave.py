"""Times of the stage wave: staging from nothing, and staging again with nothing to do.

python -m bench.wave        in mount namespaces of its own; prints two medians, milliseconds
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import measure

RUNS = 7


def wave_times() -> tuple[float, float]:
    """Milliseconds to stage 8 GPUs, and to stage them again; what an ordinary user mounts stays in namespaces."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    first, again = measure.output(*unshare, sys.executable, "-m", "bench.wave").split()
    return float(first), float(again)


async def _waves(directory: str, real_nodes: bool) -> tuple[float, float]:
    from simnode.host import Host
    from simnode.profile import Options, compile_state, load_board
    from simnode.sandbox.installed import native
    from simnode.simulators.gpudriver import DriverFiles, GPUDriver
    from simnode.state import Facts

    state = compile_state(load_board("h100"), Options(), {}, generation=1)
    host = Host(directory, boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    files = DriverFiles(*(Path(native(name)).read_bytes() for name in ("libnvidia-ml.so", "nvidia-smi", "libcuda.so")))
    driver = GPUDriver(host, files, "node" if real_nodes else "stand-in")
    moments = [time.perf_counter()]
    for _ in range(2):
        await driver.stage(state, Facts())
        moments.append(time.perf_counter())
    await driver.discard()
    return (moments[1] - moments[0]) * 1000, (moments[2] - moments[1]) * 1000


def main(real_nodes: bool) -> None:
    """Measure in a tmpfs, as a node's root is one."""
    times = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["mount", "-t", "tmpfs", "simnode", directory], check=True)
            times.append(asyncio.run(_waves(directory, real_nodes)))
            subprocess.run(["umount", "--lazy", directory], check=True)
    print(*(round(statistics.median(column), 3) for column in zip(*times, strict=True)))


if __name__ == "__main__":
    main(real_nodes=Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"])
