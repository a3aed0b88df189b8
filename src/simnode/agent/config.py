"""What an agent is made of."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from simnode.agent.reports import Reports
from simnode.contracts import Simulator, StateSource


class AgentConfig(msgspec.Struct, frozen=True):
    """The parts of an agent and its times, all in seconds.

    `deadline` bounds each call of one simulator; `lock_timeout` the wait for the staging lock; `shutdown_timeout` the
    whole way down, of which at most half goes into waiting for what still runs and for the lock. Every
    `resync_interval` the agent looks whether all is as it should be; 0: never. `staging_lock_path`: where injectors
    look, None if there are none; `lifetime_lock_path`: one a root; neither may lie where a workload can open it.
    `reports`: those whose `report` the simulators were given.
    """

    simulators: tuple[Simulator, ...]
    source: StateSource
    log: logging.Logger
    shutdown_timeout: float = 30.0
    staging_lock_path: Path | None = None
    lifetime_lock_path: Path | None = None
    reports: Reports = msgspec.field(default_factory=Reports)
    deadline: float = 30.0
    lock_timeout: float = 30.0
    resync_interval: float = 60.0
    first_retry: float = 1.0
    slowest_retry: float = 60.0
