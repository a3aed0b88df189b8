"""Which getters that take a device and nothing else an H100 refuses, why, and how that is known.

The board is `h100` as it is built in: idle, unpartitioned, in a Linux machine that is no vGPU host and computes nothing
confidentially. The names are those of nvidia-ml-py, so older bindings have fewer of them.
"""

from __future__ import annotations

from dataclasses import dataclass

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3


@dataclass(frozen=True)
class Reason:
    """Getters that are refused alike: without their `nvmlDevice`, and the nvmlReturn_t of all.

    `open` if nothing public tells what a real H100 answers; `known` then says what the refusal goes by.
    """

    why: str
    known: str
    names: str
    code: int = NOT_SUPPORTED
    open: bool = False

    def getters(self) -> list[str]:
        """Their whole names."""
        return [f"nvmlDevice{name}" for name in self.names.split()]


REASONS = (
    Reason(
        "it is no vGPU host",
        "N/A in the capture for the host and heterogeneous modes; DCGM's tests expect the refusal of an H200; nvml.h "
        "names it for whatever is in no vGPU host mode",
        "GetActiveVgpus GetCreatableVgpus GetSupportedVgpus GetHostVgpuMode GetPgpuMetadataString GetVgpuMetadata "
        "GetVgpuHeterogeneousMode GetVgpuSchedulerCapabilities GetVgpuSchedulerLog GetVgpuSchedulerState",
    ),
    Reason(
        "it is no MIG device",
        "nvml.h: for MIG devices only; the tests of cuda-python found the attributes refused by whole GPUs",
        "GetAttributes GetAttributes_v2 GetComputeInstanceId GetGpuInstanceId",
    ),
    Reason(
        "it is no MIG device, as whose the handle is given",
        "nvml.h: the handle is not valid there",
        "GetDeviceHandleFromMigDeviceHandle",
        code=INVALID_ARGUMENT,
    ),
    Reason(
        "it has no fan",
        "N/A in the capture; nvml.h: for boards with fans",
        "GetCoolerInfo GetFanSpeed GetFanSpeedRPM GetMinMaxFanSpeed",
    ),
    Reason(
        "Windows has that",
        "N/A in the capture",
        "GetCurrentDriverModel GetDriverModel GetDriverModel_v1 GetDriverModel_v2 GetPendingDriverModel",
    ),
    Reason(
        "older boards had that",
        "N/A in the capture: operation modes, auto boost, bridge chips, and pages that wait for their retirement",
        "GetCurrentGpuOperationMode GetGpuOperationMode GetPendingGpuOperationMode GetAutoBoostedClocksEnabled "
        "GetBridgeChipInfo GetRetiredPagesPendingStatus",
    ),
    Reason(
        "newer boards have that",
        "N/A in the capture; nvml.h: host names since Blackwell",
        "GetCurrentDramEncryptionMode GetDramEncryptionMode GetPendingDramEncryptionMode GetHostname_v1",
    ),
    Reason(
        "it is no NUMA node",
        "N/A in `topo -m` of an H100 on x86-64; the DRA driver's authors found it refused by L4s with driver 580.126",
        "GetNumaNodeId",
    ),
    Reason(
        "drivers before 610 do not have it",
        "the board's driver is 580.105; how long a driver was loaded is not simulated for newer ones",
        "GetBBXTimeData_v1",
    ),
    Reason(
        "it cannot be overclocked",
        "P100 and T10 refuse clock offsets; nobody tells of an H100",
        "GetGpcClkMinMaxVfOffset GetGpcClkVfOffset GetMemClkMinMaxVfOffset GetMemClkVfOffset",
        open=True,
    ),
    Reason(
        "it computes nothing confidentially",
        "nvml.h allows the refusal; a certificate could not be made up that verifies",
        "GetConfComputeGpuCertificate",
        open=True,
    ),
)
CODES = {name: reason.code for reason in REASONS for name in reason.getters()}
"""The nvmlReturn_t that each refused getter answers."""
