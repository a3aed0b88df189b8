"""The simulator of the NVLink fabric's shape: the topology document, for whoever wants to read the whole of it.

It describes every node of the cluster and is staged as its author wrote it; what of it concerns this node is compiled
into the State and reaches NVML through the image. The file's mere presence says that there is a topology, so without a
document there is no file.
"""

from __future__ import annotations

from simnode.host import File, Tree
from simnode.simulators import TreeSimulator
from simnode.state import Facts, State

TOPOLOGY = "topology/topology.yaml"


class NVLink(TreeSimulator):
    """Stages the topology document."""

    name = "nvlink"

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """The document, if the State has one."""
        return Tree([File(TOPOLOGY, state.topology_raw)] if state.topology_raw else [])
