"""The symbols that libnvidia-ml.so.1 exports, by what a call that nothing answers must check first.

Source of the facts: the prototypes of nvml.h 13.5, every older name that real libraries offer or offered (unsuffixed,
_v1, _v2, five that were in a few releases only), the two Blacklist names and nvmlInternalGetExportTable. No name may be
missing: Go consumers bind all of them.

Standard library only: the build reads it before anything is installed.
"""

from __future__ import annotations

_DEVICE = """
    ClearAccountingPids ClearCpuAffinity ClearEccErrorCounts ClearFieldValues CreateGpuInstance
    CreateGpuInstanceWithPlacement FreezeNvLinkUtilizationCounter GetAPIRestriction GetAccountingBufferSize
    GetAccountingMode GetAccountingPids GetAccountingStats GetAccountingStats_v2 GetActiveVgpus
    GetAdaptiveClockInfoStatus GetAdaptiveTgpModeInfo_v1 GetAddressingMode GetApplicationsClock GetArchitecture
    GetAttributes GetAttributes_v2 GetAutoBoostedClocksEnabled GetBAR1MemoryInfo GetBBXTimeData_v1
    GetBankRemapperStatus_v1 GetBoardId GetBoardPartNumber GetBrand GetBridgeChipInfo GetBusType GetC2cModeInfoV
    GetCapabilities GetClkMonStatus GetClock GetClockInfo GetClockOffsets GetComputeInstanceId GetComputeMode
    GetComputeRunningProcesses GetComputeRunningProcesses_v2 GetComputeRunningProcesses_v3
    GetConfComputeGpuAttestationReport GetConfComputeGpuCertificate GetConfComputeMemSizeInfo
    GetConfComputeProtectedMemoryUsage GetCoolerInfo GetCpuAffinity GetCpuAffinityWithinScope GetCreatableVgpus
    GetCudaComputeCapability GetCurrPcieLinkGeneration GetCurrPcieLinkWidth GetCurrentClockFreqs
    GetCurrentClocksEventReasons GetCurrentClocksThrottleReasons GetDecoderUtilization GetDefaultApplicationsClock
    GetDefaultEccMode GetDetailedEccErrors GetDeviceHandleFromMigDeviceHandle GetDisplayActive GetDisplayMode
    GetDramEncryptionMode GetDriverModel GetDriverModel_v2 GetDynamicPstatesInfo GetEccMode GetEncoderCapacity
    GetEncoderSessions GetEncoderStats GetEncoderUtilization GetEnforcedPowerLimit GetFBCSessions GetFBCStats
    GetFanControlPolicy_v2 GetFanSpeed GetFanSpeedRPM GetFanSpeed_v2 GetFieldValues GetGpcClkMinMaxVfOffset
    GetGpcClkVfOffset GetGpuFabricInfo GetGpuFabricInfoV GetGpuFabricInfo_v4 GetGpuInstanceById GetGpuInstanceId
    GetGpuInstancePossiblePlacements GetGpuInstancePossiblePlacements_v2 GetGpuInstanceProfileInfo
    GetGpuInstanceProfileInfoByIdV GetGpuInstanceProfileInfoV GetGpuInstanceRemainingCapacity GetGpuInstances
    GetGpuMaxPcieLinkGeneration GetGpuOperationMode GetGpuUptime_v1 GetGraphicsRunningProcesses
    GetGraphicsRunningProcesses_v2 GetGraphicsRunningProcesses_v3 GetGridLicensableFeatures
    GetGridLicensableFeatures_v2 GetGridLicensableFeatures_v3 GetGridLicensableFeatures_v4 GetGspFirmwareMode
    GetGspFirmwareVersion GetHostVgpuMode GetHostname_v1 GetIndex GetInforomConfigurationChecksum
    GetInforomImageVersion GetInforomVersion GetIrqNum GetJpgUtilization GetLastBBXFlushTime
    GetMPSComputeRunningProcesses GetMPSComputeRunningProcesses_v2 GetMPSComputeRunningProcesses_v3
    GetMarginTemperature GetMaxClockInfo GetMaxCustomerBoostClock GetMaxMigDeviceCount GetMaxPcieLinkGeneration
    GetMaxPcieLinkWidth GetMemClkMinMaxVfOffset GetMemClkVfOffset GetMemoryAffinity GetMemoryBusWidth
    GetMemoryErrorCounter GetMemoryInfo GetMemoryInfo_v2 GetMemoryLimits_v1 GetMigDeviceHandleByIndex GetMigMode
    GetMinMaxClockOfPState GetMinMaxFanSpeed GetMinorNumber GetModuleId GetMultiGpuBoard GetName GetNumFans
    GetNumGpuCores GetNumaNodeId GetNvLinkCapability GetNvLinkErrorCounter GetNvLinkInfo GetNvLinkInfo_v3
    GetNvLinkRemoteDeviceType GetNvLinkRemotePciInfo GetNvLinkRemotePciInfo_v2 GetNvLinkState
    GetNvLinkTelemetrySamples_v1 GetNvLinkUtilizationControl GetNvLinkUtilizationCounter GetNvLinkVersion
    GetNvlinkBwMode GetNvlinkNvlePrivateInfo_v1 GetNvlinkRemapTableInfo_v1 GetNvlinkSupportedBwModes
    GetOfaUtilization GetP2PStatus GetPciInfo GetPciInfoExt GetPciInfo_v2 GetPciInfo_v3 GetPcieLinkMaxSpeed
    GetPcieReplayCounter GetPcieSpeed GetPcieThroughput GetPdi GetPerformanceModes GetPerformanceState
    GetPersistenceMode GetPgpuMetadataString GetPlatformInfo GetPowerManagementDefaultLimit GetPowerManagementLimit
    GetPowerManagementLimitConstraints GetPowerManagementMode GetPowerMizerMode_v1 GetPowerSource GetPowerState
    GetPowerUsage GetProcessUtilization GetProcessesUtilizationInfo GetRemappedRows GetRemappedRows_v2
    GetRepairStatus GetRetiredPages GetRetiredPagesPendingStatus GetRetiredPages_v2 GetRowRemapperHistogram
    GetRunningProcessDetailList GetSamples GetSerial GetSramEccErrorStatus GetSramUniqueUncorrectedEccErrorCounts
    GetSupportedClocksEventReasons GetSupportedClocksThrottleReasons GetSupportedEventTypes
    GetSupportedGraphicsClocks GetSupportedMemoryClocks GetSupportedPerformanceStates GetSupportedVgpus
    GetTargetFanSpeed GetTemperature GetTemperatureThreshold GetTemperatureV GetThermalSettings
    GetTopologyCommonAncestor GetTopologyNearestGpus GetTotalEccErrors GetTotalEnergyConsumption GetUUID
    GetUnrepairableMemoryFlag_v1 GetUtilizationRates GetVbiosVersion GetVgpuCapabilities GetVgpuHeterogeneousMode
    GetVgpuInstancesUtilizationInfo GetVgpuMetadata GetVgpuProcessUtilization GetVgpuProcessesUtilizationInfo
    GetVgpuSchedulerCapabilities GetVgpuSchedulerLog GetVgpuSchedulerLog_v2 GetVgpuSchedulerState
    GetVgpuSchedulerState_v2 GetVgpuTypeCreatablePlacements GetVgpuTypeSupportedPlacements GetVgpuUtilization
    GetViolationStatus GetVirtualizationMode IsMigDeviceHandle LockNvlinkRemapTable_v1 OnSameBoard
    PerfMetricsGetSamples_v1 PowerSmoothingActivatePresetProfile PowerSmoothingSetState
    PowerSmoothingUpdatePresetProfileParam ReadPRMCounters_v1 ReadWritePRM_v1 RegisterEvents ResetApplicationsClocks
    ResetGpuLockedClocks ResetMemoryLockedClocks ResetNvLinkErrorCounters ResetNvLinkUtilizationCounter
    SetAPIRestriction SetAccountingMode SetAdaptiveTgpMode_v1 SetApplicationsClocks SetAutoBoostedClocksEnabled
    SetClockOffsets SetComputeMode SetConfComputeUnprotectedMemSize SetCpuAffinity
    SetDefaultAutoBoostedClocksEnabled SetDefaultFanSpeed_v2 SetDramEncryptionMode SetDriverModel SetEccMode
    SetFanControlPolicy SetFanSpeed_v2 SetGpcClkVfOffset SetGpuLockedClocks SetGpuOperationMode SetHostname_v1
    SetMemClkVfOffset SetMemoryLimits_v1 SetMemoryLockedClocks SetMigMode SetNvLinkDeviceLowPowerThreshold
    SetNvLinkUtilizationControl SetNvlinkBwMode SetNvlinkBwModeAsync_v1 SetNvlinkNvleReady_v1 SetPersistenceMode
    SetPowerManagementLimit SetPowerManagementLimit_v2 SetPowerMizerMode_v1 SetRusdSettings_v1
    SetTemperatureThreshold SetVgpuCapabilities SetVgpuHeterogeneousMode SetVgpuSchedulerState
    SetVgpuSchedulerState_v2 SetVirtualizationMode SetupNvlinkNvleEncryptionKey_v1 ValidateInforom
    VgpuForceGspUnload WorkloadPowerProfileClearRequestedProfiles WorkloadPowerProfileGetCurrentProfiles
    WorkloadPowerProfileGetProfilesInfo WorkloadPowerProfileSetRequestedProfiles
    WorkloadPowerProfileUpdateProfiles_v1
"""
# In the headers of a few releases only (520; 525 and 530), and never again.
_DEVICE_ONCE = """
    CcuGetStreamState CcuSetStreamState GetPowerMode GetSupportedPowerModes SetPowerMode
"""
_DEVICE_ELSEWHERE = """
    GpmMigSampleGet GpmQueryDeviceSupport GpmQueryIfStreamingEnabled GpmSampleGet GpmSetStreamingEnabled
    VgpuTypeGetMaxInstances
"""
_PLAIN = """
    ComputeInstanceDestroy ComputeInstanceGetInfo ComputeInstanceGetInfo_v2 DeviceDiscoverGpus DeviceGetCount
    DeviceGetCount_v2 DeviceGetHandleByIndex DeviceGetHandleByIndex_v2 DeviceGetHandleByPciBusId
    DeviceGetHandleByPciBusId_v2 DeviceGetHandleBySerial DeviceGetHandleByUUID DeviceGetHandleByUUIDV
    DeviceModifyDrainState DeviceQueryDrainState DeviceRemoveGpu DeviceRemoveGpu_v2 ErrorString EventSetCreate
    EventSetFree EventSetGetContextCount_v1 EventSetGetContextData_v1 EventSetGetContextInfo_v1
    EventSetGetGpuOperationalEventContextLegacyXid_v1 EventSetRegisterGpuOperationalEvents_v1 EventSetWait
    EventSetWait_v2 EventSetWait_v3 GetBlacklistDeviceCount GetBlacklistDeviceInfoByIndex GetExcludedDeviceCount
    GetExcludedDeviceInfoByIndex GetVgpuCompatibility GetVgpuDriverCapabilities GetVgpuVersion GpmMetricsGet
    GpmSampleAlloc GpmSampleFree GpuInstanceCreateComputeInstance GpuInstanceCreateComputeInstanceWithPlacement
    GpuInstanceDestroy GpuInstanceGetActiveVgpus GpuInstanceGetComputeInstanceById
    GpuInstanceGetComputeInstancePossiblePlacements GpuInstanceGetComputeInstanceProfileInfo
    GpuInstanceGetComputeInstanceProfileInfoV GpuInstanceGetComputeInstanceRemainingCapacity
    GpuInstanceGetComputeInstances GpuInstanceGetCreatableVgpus GpuInstanceGetInfo
    GpuInstanceGetVgpuHeterogeneousMode GpuInstanceGetVgpuSchedulerLog GpuInstanceGetVgpuSchedulerLog_v2
    GpuInstanceGetVgpuSchedulerState GpuInstanceGetVgpuSchedulerState_v2 GpuInstanceGetVgpuTypeCreatablePlacements
    GpuInstanceSetVgpuHeterogeneousMode GpuInstanceSetVgpuSchedulerState GpuInstanceSetVgpuSchedulerState_v2 Init
    InitWithFlags Init_v2 InternalGetExportTable SetVgpuVersion Shutdown SystemEventSetCreate SystemEventSetFree
    SystemEventSetWait SystemGetCPER_v1 SystemGetConfComputeCapabilities SystemGetConfComputeGpusReadyState
    SystemGetConfComputeKeyRotationThresholdInfo SystemGetConfComputeSettings SystemGetConfComputeSettings_v2
    SystemGetConfComputeState SystemGetCudaDriverVersion SystemGetCudaDriverVersion_v2 SystemGetDriverBranch
    SystemGetDriverVersion SystemGetHicVersion SystemGetNVMLVersion SystemGetNvlinkBwMode SystemGetProcessName
    SystemGetTopologyGpuSet SystemRegisterEvents SystemSetConfComputeGpusReadyState
    SystemSetConfComputeKeyRotationThresholdInfo SystemSetNvlinkBwMode UnitGetCount UnitGetDevices
    UnitGetFanSpeedInfo UnitGetHandleByIndex UnitGetLedState UnitGetPsuInfo UnitGetTemperature UnitGetUnitInfo
    UnitSetLedState VgpuInstanceClearAccountingPids VgpuInstanceGetAccountingMode VgpuInstanceGetAccountingPids
    VgpuInstanceGetAccountingStats VgpuInstanceGetEccMode VgpuInstanceGetEncoderCapacity
    VgpuInstanceGetEncoderSessions VgpuInstanceGetEncoderStats VgpuInstanceGetFBCSessions VgpuInstanceGetFBCStats
    VgpuInstanceGetFbUsage VgpuInstanceGetFrameRateLimit VgpuInstanceGetGpuInstanceId VgpuInstanceGetGpuPciId
    VgpuInstanceGetLicenseInfo VgpuInstanceGetLicenseInfo_v2 VgpuInstanceGetLicenseStatus VgpuInstanceGetMdevUUID
    VgpuInstanceGetMetadata VgpuInstanceGetPlacementId VgpuInstanceGetRuntimeStateSize VgpuInstanceGetType
    VgpuInstanceGetUUID VgpuInstanceGetVmDriverVersion VgpuInstanceGetVmID VgpuInstanceSetEncoderCapacity
    VgpuTypeGetBAR1Info VgpuTypeGetCapabilities VgpuTypeGetClass VgpuTypeGetDeviceID VgpuTypeGetFbReservation
    VgpuTypeGetFrameRateLimit VgpuTypeGetFramebufferSize VgpuTypeGetGpuInstanceProfileId VgpuTypeGetGspHeapSize
    VgpuTypeGetLicense VgpuTypeGetMaxInstancesPerGpuInstance VgpuTypeGetMaxInstancesPerVm VgpuTypeGetName
    VgpuTypeGetNumDisplayHeads VgpuTypeGetResolution
"""

# Functions that change a device, by the cell of what they would change. An ordinary user may call none of them.
_SETTERS = {
    "persistence_mode": "SetPersistenceMode",
    "compute_mode": "SetComputeMode",
    "ecc.mode_current": "SetEccMode ClearEccErrorCounts",
    "power.min_limit_mw": "SetPowerManagementLimit SetPowerManagementLimit_v2",
    "clocks.graphics_app": "SetApplicationsClocks ResetApplicationsClocks SetAPIRestriction",
    "clocks.graphics_max": "SetGpuLockedClocks ResetGpuLockedClocks",
    "clocks.memory_max": "SetMemoryLockedClocks ResetMemoryLockedClocks",
    "accounting.mode": "SetAccountingMode ClearAccountingPids",
    "mig.mode_current": "SetMigMode CreateGpuInstance CreateGpuInstanceWithPlacement",
    "gpu_operation_mode.current": "SetGpuOperationMode",
    "fan.speed_percent": "SetFanSpeed_v2 SetDefaultFanSpeed_v2 SetFanControlPolicy",
    "dram_encryption.mode_current": "SetDramEncryptionMode",
    "nvlink.version": "ResetNvLinkErrorCounters SetNvLinkDeviceLowPowerThreshold ClearFieldValues",
    "power_smoothing.mode": (
        "PowerSmoothingActivatePresetProfile PowerSmoothingUpdatePresetProfileParam PowerSmoothingSetState"
    ),
    "power_profiles.requested": (
        "WorkloadPowerProfileSetRequestedProfiles WorkloadPowerProfileClearRequestedProfiles "
        "WorkloadPowerProfileUpdateProfiles_v1"
    ),
}

SETTERS = {f"nvmlDevice{name}": key for key, names in _SETTERS.items() for name in names.split()}
"""The cell whose refusal a setter gives; where the cell has a value, the setter answers NO_PERMISSION."""

DEVICE_FIRST = tuple(
    sorted(
        [f"nvmlDevice{name}" for name in (_DEVICE + _DEVICE_ONCE).split()]
        + [f"nvml{name}" for name in _DEVICE_ELSEWHERE.split()]
    )
)
"""Functions whose first parameter is an nvmlDevice_t."""

PLAIN = tuple(sorted(f"nvml{name}" for name in _PLAIN.split()))
"""All other functions; each of them returns an nvmlReturn_t but nvmlErrorString."""

EXPORTS = tuple(sorted(DEVICE_FIRST + PLAIN))
