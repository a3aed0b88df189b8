"""A program that kills agents: `killing.py ROOT CONFIG SEED KILLS`, on one host root, at random moments.

Profile and overrides change before and while each of them lives. They are forked from one process that has everything
imported, so that a life is short and most moments fall into its work.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from simnode.cli.agent import keep
from simnode.cli.settings import Settings
from simnode.sources.file import OVERRIDES
from tests.agent_host.running import BOARD

LONGEST_LIFE_S = 0.3
DRIVERS = ("580.105.08", "550.163.01", "535.104.05")


def settings(root: Path, config: Path) -> Settings:
    return Settings(
        config=config,
        topology=None,
        host_root=root,
        health_addr="",
        staging_lock_path=None,
        resync_interval=0.05,
        shutdown_timeout=5.0,
        log_level="error",
        log_format="plain",
        gpus=None,
        driver_version=None,
        said={},
        fabricmanager_init_delay=0.0,
        nvidia_smi=None,
        cdi_directories=("/var/run/cdi",),
        force=False,
    )


def change(chance: random.Random, config: Path, overrides: Path) -> None:
    """Write another profile, and other overrides or none."""
    text = BOARD.read_text().replace("num_devices: 8", f"num_devices: {chance.randint(0, 8)}")
    text = text.replace("580.105.08", chance.choice(DRIVERS))
    replace(config, f"{text}\nfabricmanager:\n  enabled: {chance.choice(('true', 'false'))}\n")
    if overrides.parent.is_dir():
        if chance.random() < 0.5:
            replace(overrides, f"version: 1\nall:\n  thermal:\n    temperature_gpu_c: {chance.randint(30, 80)}\n")
        else:
            overrides.unlink(missing_ok=True)


def replace(path: Path, text: str) -> None:
    temporary = Path(f"{path}.new")
    temporary.write_text(text)
    temporary.rename(path)


def main(root: Path, config: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    overrides = root / "var/lib/simnode" / OVERRIDES
    for _ in range(kills):
        change(chance, config, overrides)
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os._exit(keep(settings(root, config)))
        life = chance.uniform(0, LONGEST_LIFE_S)
        time.sleep(life / 2)
        change(chance, config, overrides)
        time.sleep(life / 2)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the agent ended by itself"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    Path(f"{overrides}.new").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
