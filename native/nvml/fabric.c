/* The NVLink fabric's view of a device, in four layouts. Unsupported comes before a wrong tag. */
#define _GNU_SOURCE
#include "access.h"

/* Tri-states of two bits in the health mask: 0 unsupported, 1 true, 2 false; then 4 bits of configuration, 1 = none. */
#define DEGRADED_BANDWIDTH(mask) ((mask) & 3)
#define ROUTE_RECOVERY(mask) ((mask) >> 2 & 3)
#define ROUTE_UNHEALTHY(mask) ((mask) >> 4 & 3)
#define ACCESS_TIMEOUT(mask) ((mask) >> 6 & 3)
#define CONFIGURATION(mask) ((mask) >> 8 & 15)

enum { SUMMARY_NONE, SUMMARY_HEALTHY, SUMMARY_UNHEALTHY, SUMMARY_LIMITED };

/* What the mask adds up to, where the profile pins no summary. */
static unsigned char summary_of(unsigned int mask)
{
    if (mask == 0)
        return SUMMARY_NONE;
    if (ROUTE_RECOVERY(mask) == 1 || ROUTE_UNHEALTHY(mask) == 1 || ACCESS_TIMEOUT(mask) == 1 || CONFIGURATION(mask) > 1)
        return SUMMARY_UNHEALTHY;
    return DEGRADED_BANDWIDTH(mask) == 1 ? SUMMARY_LIMITED : SUMMARY_HEALTHY;
}

static nvmlReturn_t copy_fabric(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            const struct sn_device *from = read.device;
            code = (nvmlReturn_t)from->fabric_state.status;
            memset(info, 0, sizeof(*info));
            memcpy(info->clusterUuid, from->fabric_cluster_uuid.value, sizeof(info->clusterUuid));
            info->status = (nvmlReturn_t)from->fabric_status.value;
            info->cliqueId = from->fabric_clique_id.value;
            info->state = (unsigned char)from->fabric_state.value;
            info->healthMask = from->fabric_health_mask.value;
            info->healthSummary = (unsigned char)from->fabric_health_summary.value;
        }
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS && info->healthSummary == SUMMARY_NONE)
        info->healthSummary = summary_of(info->healthMask);
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    nvmlGpuFabricInfo_v3_t from;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = copy_fabric(device, &from);
    if (code == NVML_SUCCESS)
        memcpy(info, from.clusterUuid, offsetof(nvmlGpuFabricInfo_t, state) + sizeof(info->state));
    return code;
}

/* Not a byte beyond the caller's own version is touched. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    nvmlGpuFabricInfo_v3_t from;
    size_t size;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = copy_fabric(device, &from);
    if (code != NVML_SUCCESS)
        return code;
    if (info->version == SN_TAG(nvmlGpuFabricInfo_v2_t, 2))
        size = sizeof(nvmlGpuFabricInfo_v2_t);
    else if (info->version == SN_TAG(nvmlGpuFabricInfo_v3_t, 3))
        size = sizeof(nvmlGpuFabricInfo_v3_t);
    else
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    from.version = info->version;
    memcpy(info, &from, size);
    return NVML_SUCCESS;
}

/* The fourth has no tag: its version is in the name. One clique, the one that pointers reach. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t device, nvmlGpuFabricInfo_v4_t *info)
{
    nvmlGpuFabricInfo_v3_t from;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = copy_fabric(device, &from);
    if (code != NVML_SUCCESS)
        return code;
    memset(info, 0, sizeof(*info));
    memcpy(info->clusterUuid, from.clusterUuid, sizeof(info->clusterUuid));
    info->status = from.status;
    info->cliques[0].id = from.cliqueId;
    info->numCliques = 1;
    info->state = from.state;
    info->healthMask = from.healthMask;
    info->healthSummary = from.healthSummary;
    return NVML_SUCCESS;
}
