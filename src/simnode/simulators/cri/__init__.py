"""The node as container runtimes see it: CDI specs, and the hook that mounts what no spec can have mounted."""

from simnode.simulators.cri.simulator import CRI, Runtimes

__all__ = ["CRI", "Runtimes"]
