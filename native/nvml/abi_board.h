/* Structs of what a board is and can do: fabric, platform, modes, clocks, confidential computing, monitoring. */
#ifndef SN_ABI_BOARD_H
#define SN_ABI_BOARD_H

#include "abi.h"

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    unsigned char type;
    unsigned int id;
} nvmlGpuFabricClique_v1_t;

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    nvmlGpuFabricClique_v1_t cliques[64];
    unsigned int numCliques;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v4_t;

typedef struct {
    unsigned int version;
    unsigned char ibGuid[16];
    unsigned char chassisSerialNumber[16];
    unsigned char slotNumber;
    unsigned char trayIndex;
    unsigned char hostId;
    unsigned char peerType;
    unsigned char moduleId;
} nvmlPlatformInfo_v2_t;

typedef struct {
    unsigned int isC2cEnabled;
} nvmlC2cModeInfo_v1_t;

typedef struct {
    unsigned int version;
    unsigned int value;
} nvmlDeviceAddressingMode_v1_t;

typedef struct {
    unsigned int version;
    unsigned int capMask;
} nvmlDeviceCapabilities_v1_t;

typedef struct {
    unsigned int version;
    unsigned long long value;
} nvmlPdi_v1_t;

typedef struct {
    unsigned int sessionsCount;
    unsigned int averageFPS;
    unsigned int averageLatency;
} nvmlFBCStats_t;

typedef struct {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef union {
    char str[41];
    unsigned char bytes[16];
} nvmlUUIDValue_t;

typedef struct {
    unsigned int version;
    unsigned int type;
    nvmlUUIDValue_t value;
} nvmlUUID_v1_t;

typedef struct {
    unsigned int version;
    char branch[80];
} nvmlSystemDriverBranchInfo_v1_t;

typedef struct {
    unsigned char bridgeCount;
    struct {
        unsigned int type;
        unsigned int fwVersion;
    } bridgeChipInfo[128];
} nvmlBridgeChipHierarchy_t;

typedef struct {
    unsigned int flags;
    struct {
        unsigned int bIsPresent;
        unsigned int percentage;
        unsigned int incThreshold;
        unsigned int decThreshold;
    } utilization[8];
} nvmlGpuDynamicPstatesInfo_t;

/* The beginning of nvmlClkMonStatus_t, which all its layouts share. */
typedef struct {
    unsigned int bGlobalStatus;
    unsigned int clkMonListSize;
} sn_clk_mon_status;

/* The beginning of nvmlGridLicensableFeatures_t, which all its layouts share. */
typedef struct {
    int isGridLicenseSupported;
    unsigned int licensableFeaturesCount;
} sn_grid_features;

typedef struct {
    unsigned int version;
    char str[2048];
} nvmlDevicePerfModes_v1_t;

typedef struct {
    unsigned int version;
    char str[2048];
} nvmlDeviceCurrentClockFreqs_v1_t;

typedef struct {
    unsigned int version;
    unsigned int encryptionState;
} nvmlDramEncryptionInfo_v1_t;

typedef struct {
    unsigned int mask[8];
} nvmlMask255_t;

typedef struct {
    unsigned int version;
    nvmlMask255_t perfProfilesMask;
    nvmlMask255_t requestedProfilesMask;
    nvmlMask255_t enforcedProfilesMask;
} nvmlWorkloadPowerProfileCurrentProfiles_v1_t;

typedef struct {
    unsigned int version;
    unsigned int entryCount;
    void *entries;
} nvmlEccSramUniqueUncorrectedErrorCounts_v1_t;

typedef struct {
    unsigned int bUnrepairableMemory;
} nvmlUnrepairableMemoryStatus_v1_t;

typedef struct {
    unsigned long long protectedMemSizeKib;
    unsigned long long unprotectedMemSizeKib;
} nvmlConfComputeMemSizeInfo_t;

typedef struct {
    unsigned int cpuCaps;
    unsigned int gpusCaps;
} nvmlConfComputeSystemCaps_t;

typedef struct {
    unsigned int environment;
    unsigned int ccFeature;
    unsigned int devToolsMode;
} nvmlConfComputeSystemState_t;

typedef struct {
    unsigned int version;
    unsigned int environment;
    unsigned int ccFeature;
    unsigned int devToolsMode;
    unsigned int multiGpuMode;
} nvmlSystemConfComputeSettings_v1_t;

typedef struct {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        const char *shortName;
        const char *longName;
        const char *unit;
    } metricInfo;
} nvmlGpmMetric_t;

/* The beginning of nvmlGpmMetricsGet_t, whose array has grown since; its version has been a plain 1 all along. */
typedef struct {
    unsigned int version;
    unsigned int numMetrics;
    nvmlGpmSample_t sample1;
    nvmlGpmSample_t sample2;
    nvmlGpmMetric_t metrics[1];
} sn_gpm_metrics_get;

typedef struct {
    unsigned int version;
    unsigned int isSupportedDevice;
} nvmlGpmSupport_t;

typedef struct {
    unsigned int version;
    unsigned char powerScope;
    unsigned int powerValueMw;
} nvmlPowerValue_v2_t;

#endif
