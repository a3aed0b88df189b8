"""What `simnode agent` is told, and which of it no later change can put right: that ends it before it begins.

A profile that is wrong is none of that: the agent waits for a better one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from simnode.agent.responder import AddressError, split
from simnode.profile import Compiler, Options, ProfileError, load_board
from simnode.profile.faults import Fault

_LARGEST_PROGRAM = 64 << 20
_ANY_BOARD = "h100"


class Settings(Struct, frozen=True):
    """What the command line and the environment say; times in seconds. `said`: what beats the environment's names.

    `staging_lock_path`: None for the usual place, "" for none. An empty `health_addr` serves no port.
    """

    config: Path
    topology: Path | None
    host_root: Path
    health_addr: str
    staging_lock_path: str | None
    resync_interval: float
    shutdown_timeout: float
    log_level: str
    log_format: str
    gpus: int | None
    driver_version: str | None
    said: Mapping[str, str]
    fabricmanager_init_delay: float
    nvidia_smi: Path | None
    cdi_directories: tuple[str, ...]
    force: bool
    kmsg: Path | None = None

    @property
    def options(self) -> Options:
        """What beats profile and environment."""
        return Options(gpus=self.gpus, driver_version=self.driver_version)

    @property
    def environ(self) -> Mapping[str, str]:
        """What beats the profile."""
        return {**os.environ, **self.said}

    def mistakes(self) -> Iterator[str]:
        """A line for each."""
        try:
            if self.health_addr:
                split(self.health_addr)
        except AddressError as error:
            yield f"--health-addr: {error}"
        topology = self.topology if self.topology and os.path.lexists(self.topology) else None
        for option, path in (("--config", self.config), ("--topology", topology), ("--nvidia-smi", self.nvidia_smi)):
            if path is not None and (refusal := _unreadable(path)):
                yield f"{option} {path}: {refusal}"
            elif path == self.nvidia_smi and path is not None and path.stat().st_size > _LARGEST_PROGRAM:
                yield f"{option} {path}: is larger than {_LARGEST_PROGRAM >> 20} MiB"
        if self.kmsg and not os.access(self.kmsg, os.W_OK):
            yield f"--kmsg {self.kmsg}: cannot be written; it is /dev/kmsg where a container has that, and root's"
        try:
            Compiler(load_board(_ANY_BOARD), self.options, self.environ).compile()
        except ProfileError as error:
            yield from map(self._as_given, error.faults)

    def _as_given(self, fault: Fault) -> str:
        """The fault of a variable that an option stands for names that option."""
        if fault.file == "environment" and fault.key in self.said:
            option = fault.key.removeprefix("SIMNODE_").lower().replace("_", "-")
            return str(replace(fault, file=f"--{option}", key=""))
        return str(fault)


def _unreadable(path: Path) -> str:
    """Why this is no file to read, "" if it is one."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "is not a regular file"
        return "" if os.access(path, os.R_OK) else "cannot be read: Permission denied"
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
