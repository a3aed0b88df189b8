"""What each NVML function takes, one letter an argument: enough to call it in a way that it can answer.

A function that is not here takes a device and memory, or nothing: those that no file of the library defines.
"""

from __future__ import annotations

from simnode.nvml.exports import DEVICE_FIRST

# What functions of a device take after it: n a small number, L a length, d another GPU, e an event set, c a clock of
# memory, * memory, - none. What is not here takes memory only.
_AFTER_A_DEVICE = {
    "": "SetCpuAffinity ClearCpuAffinity ValidateInforom",
    "*L": "GetName GetSerial GetUUID GetBoardPartNumber GetInforomImageVersion GetVbiosVersion "
          "GetSupportedPerformanceStates",
    "L*": "GetCpuAffinity",
    "L*n": "GetMemoryAffinity GetCpuAffinityWithinScope",
    "n": "SetPersistenceMode SetComputeMode SetEccMode ClearEccErrorCounts SetPowerManagementLimit SetAccountingMode "
         "SetGpuOperationMode",
    "n*": "GetPcieThroughput GetClockInfo GetMaxClockInfo GetApplicationsClock GetDefaultApplicationsClock "
          "GetMaxCustomerBoostClock GetFanSpeed_v2 GetTargetFanSpeed GetFanControlPolicy_v2 GetTemperature "
          "GetTemperatureThreshold GetThermalSettings GetEncoderCapacity GetAPIRestriction GetViolationStatus "
          "GetAccountingStats GetNvLinkState GetNvLinkVersion GetNvLinkRemotePciInfo GetNvLinkRemotePciInfo_v2 "
          "GetNvLinkRemoteDeviceType GetGpuInstanceProfileInfo GetGpuInstanceProfileInfoV "
          "GetGpuInstanceProfileInfoByIdV GetGpuInstanceRemainingCapacity GetGpuInstanceById "
          "GetMigDeviceHandleByIndex SetMigMode CreateGpuInstance",
    "n*L": "GetInforomVersion",
    "n**": "GetTopologyNearestGpus GetRetiredPages GetGpuInstancePossiblePlacements "
           "GetGpuInstancePossiblePlacements_v2 GetGpuInstances",
    "n***": "GetRetiredPages_v2",
    "nn*": "GetClock GetTotalEccErrors GetDetailedEccErrors GetNvLinkCapability GetNvLinkErrorCounter",
    "nn**": "GetMinMaxClockOfPState GetNvLinkUtilizationCounter",
    "nn**-": "GetSamples",
    "nnn*": "GetMemoryErrorCounter",
    "1*": "GetFieldValues",
    "c**": "GetSupportedGraphicsClocks",
    "d*": "GetTopologyCommonAncestor OnSameBoard",
    "dn*": "GetP2PStatus",
    "ne": "RegisterEvents",
    "**L": "GetProcessUtilization",
}  # fmt: skip
# What all others take: h the GPU, i a GPU instance, I a compute instance, e an event set, g a GPM sample, m a request
# for metrics, p a PCI address in numbers, # a process, T a table's name, 0 or 1 that number; and what names the GPU:
# S serial, U UUID, V the struct of it, P PCI address.
_FROM_THE_FIRST_ON = {
    "": "Init Init_v2 Shutdown",
    "e": "EventSetFree",
    "g": "GpmSampleFree",
    "0": "InitWithFlags ErrorString",
    "*": "SystemGetCudaDriverVersion SystemGetCudaDriverVersion_v2 UnitGetCount DeviceGetCount DeviceGetCount_v2 "
         "GetExcludedDeviceCount GetBlacklistDeviceCount EventSetCreate GpmSampleAlloc "
         "SystemGetConfComputeCapabilities SystemGetConfComputeState SystemGetConfComputeGpusReadyState "
         "SystemGetConfComputeSettings SystemGetNvlinkBwMode",
    "*L": "SystemGetDriverVersion SystemGetNVMLVersion SystemGetDriverBranch",
    "**": "SystemGetHicVersion",
    "n*": "DeviceGetHandleByIndex DeviceGetHandleByIndex_v2 UnitGetHandleByIndex GetExcludedDeviceInfoByIndex "
          "GetBlacklistDeviceInfoByIndex",
    "n**": "SystemGetTopologyGpuSet",
    "#*L": "SystemGetProcessName",
    "S*": "DeviceGetHandleBySerial",
    "U*": "DeviceGetHandleByUUID",
    "V*": "DeviceGetHandleByUUIDV",
    "P*": "DeviceGetHandleByPciBusId DeviceGetHandleByPciBusId_v2",
    "*T": "InternalGetExportTable",
    "p*": "DeviceQueryDrainState",
    "pn": "DeviceModifyDrainState DeviceDiscoverGpus DeviceRemoveGpu",
    "pnn": "DeviceRemoveGpu_v2",
    "e*0": "EventSetWait EventSetWait_v2",
    "hg": "GpmSampleGet",
    "hn": "GpmSetStreamingEnabled",
    "m": "GpmMetricsGet",
    "i*": "GpuInstanceGetInfo",
    "in*": "GpuInstanceGetComputeInstanceRemainingCapacity GpuInstanceGetComputeInstanceById",
    "in**": "GpuInstanceGetComputeInstancePossiblePlacements GpuInstanceGetComputeInstances",
    "inn*": "GpuInstanceGetComputeInstanceProfileInfo GpuInstanceGetComputeInstanceProfileInfoV",
    "I*": "ComputeInstanceGetInfo ComputeInstanceGetInfo_v2",
}  # fmt: skip
KINDS = (
    dict.fromkeys(DEVICE_FIRST, "h****")
    | {f"nvmlDevice{name}": f"h{kinds}" for kinds, names in _AFTER_A_DEVICE.items() for name in names.split()}
    | {f"nvml{name}": kinds for kinds, names in _FROM_THE_FIRST_ON.items() for name in names.split()}
)
"""The letters by function."""
