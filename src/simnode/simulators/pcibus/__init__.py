"""The PCI bus of the node: GPUs, NVSwitches and the bridges above them, as the kernel shows them in /sys and /proc."""

from simnode.simulators.pcibus.published import PublishedPCIBus
from simnode.simulators.pcibus.simulator import PCIBus

__all__ = ["PCIBus", "PublishedPCIBus"]
