"""The footprint of an installed GPU driver: device nodes, NVML library, nvidia-smi, procfs texts and the image."""

from simnode.simulators.gpudriver.kernellog import Kernel, machine_kernel
from simnode.simulators.gpudriver.published import Outside, PublishedGPUDriver
from simnode.simulators.gpudriver.simulator import DriverFiles, GPUDriver

__all__ = ["DriverFiles", "GPUDriver", "Kernel", "Outside", "PublishedGPUDriver", "machine_kernel"]
