"""The reconciler: keeps a node as the newest State says, through waves over its simulators."""

from simnode.agent.agent import Agent
from simnode.agent.config import AgentConfig
from simnode.agent.failures import Failure, Failures, ShutdownError
from simnode.agent.lock import LockHeldError, shared
from simnode.agent.record import Record, Timing
from simnode.agent.reports import Reports
from simnode.agent.staged import Staged

__all__ = [
    "Agent",
    "AgentConfig",
    "Failure",
    "Failures",
    "LockHeldError",
    "Record",
    "Reports",
    "ShutdownError",
    "Staged",
    "Timing",
    "shared",
]
