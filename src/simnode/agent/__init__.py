"""The reconciler: keeps a node as the newest State says, through waves over its simulators."""

from simnode.agent.agent import Agent, AgentConfig
from simnode.agent.failures import Failure, Failures, ShutdownError
from simnode.agent.staged import Staged

__all__ = ["Agent", "AgentConfig", "Failure", "Failures", "ShutdownError", "Staged"]
