"""`python -m bench.idle [SECONDS]`: what an idle agent of a host costs, in memory and in wake-ups, over five minutes.

A wake-up is a tenth of a second in which any of its threads went to sleep again (a voluntary context switch): file work
in threads makes several switches of one occasion. Two are allowed for each resync, each slow look at the documents and,
with the fabric manager on, each re-assertion of its marker, since an occasion may lie across two tenths. Exit 1 if more
happen, or if the agent is larger than it may be. Measured as the board is, and with everything on that can be.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench.measure import ROOT, SIMNODE, Failed

BOARD = ROOT / "src/simnode/profile/boards/h100.yaml"
DEFAULT_SECONDS = 300
SETTLED_S = 3.0
MOST_MIB = 45.0
RESYNC_S = POLL_S = 60.0
MARKER_S = 2.0
LOOK_S = 0.1
EVERYTHING = """
fabricmanager: {enabled: true}
imex: {enabled: true}
mig: {gpus: [{gpu_instances: [{profile: 1g.10gb, count: 7}]}]}
"""


def main(seconds: float) -> int:
    """Measure the board as it is, then with everything on; print a line for each."""
    missed = 0
    for everything in (False, True):
        mib, wakes, switches = measured(seconds, everything)
        rounds = 1 + seconds / RESYNC_S + 1 + seconds / POLL_S + (1 + seconds / MARKER_S if everything else 0)
        allowed = int(2 * rounds)
        held = mib <= MOST_MIB and wakes <= allowed
        missed += not held
        name = f"idle agent, {'everything on' if everything else 'h100'}"
        woken = f"{wakes} wake-ups ({switches} switches) in {seconds:g} s <= {allowed}"
        print(f"{name:32} {mib:5.1f} MiB <= {MOST_MIB:g}  {woken}", flush=True)
    return 1 if missed else 0


def measured(seconds: float, everything: bool) -> tuple[float, int, int]:
    """Resident MiB at the end, and the wake-ups and switches of `seconds`."""
    scratch = Path(tempfile.mkdtemp(prefix="simnode-idle-"))
    try:
        for name in ("root/var/lib", "root/run", "root/proc"):
            (scratch / name).mkdir(parents=True)
        (scratch / "root/proc/version").touch()
        (scratch / "config.yaml").write_text(BOARD.read_text() + (EVERYTHING if everything else ""))
        words = ("--config", scratch / "config.yaml", "--host-root", scratch / "root", "--health-addr", "127.0.0.1:0")
        agent = subprocess.Popen([SIMNODE, "agent", *words], stderr=subprocess.DEVNULL)
        try:
            return _watched(agent, seconds)
        finally:
            agent.terminate()
            agent.wait(60)
    finally:
        shutil.rmtree(scratch)


def _watched(agent: subprocess.Popen[bytes], seconds: float) -> tuple[float, int, int]:
    time.sleep(SETTLED_S)
    if agent.poll() is not None:
        raise Failed(f"the agent ended: exit {agent.returncode}")
    began = time.monotonic()
    first = last = _switches(agent.pid)
    wakes = 0
    for look in range(1, int(seconds / LOOK_S) + 1):
        time.sleep(max(0.0, began + look * LOOK_S - time.monotonic()))
        now = _switches(agent.pid)
        wakes += now != last
        last = now
    status = Path(f"/proc/{agent.pid}/status").read_text()
    return _number(status, "VmRSS") / 1024, wakes, last - first


def _switches(pid: int) -> int:
    """Of all threads; those that come and go for file work wake the others, which stay."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):
            total += _number(path.read_text(), "voluntary_ctxt_switches")
    return total


def _number(status: str, name: str) -> int:
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{name}:")))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SECONDS))
