/* What the rows about the NVLink fabric tell. */
#define _GNU_SOURCE
#include "query_reads.h"

#include <stdio.h>

#define FABRIC_COMPLETED 3

static nvmlReturn_t get_fabric(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    info->version = SN_TAG(nvmlGpuFabricInfo_v3_t, 3);
    return nvmlDeviceGetGpuFabricInfoV(device, info);
}

/* What is known only when the probe has completed. */
static nvmlReturn_t get_completed_fabric(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    nvmlReturn_t code = get_fabric(device, info);

    return code == NVML_SUCCESS && info->state != FABRIC_COMPLETED ? NVML_ERROR_NOT_SUPPORTED : code;
}

nvmlReturn_t read_fabric_state(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_fabric(subject->device, &info);

    return code == NVML_SUCCESS ? query_tell(subject, element, info.state, out) : code;
}

nvmlReturn_t read_fabric_status(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_completed_fabric(subject->device, &info);

    (void)element;
    if (code != NVML_SUCCESS)
        return code;
    return query_tell_text(info.status == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : smi_words(info.status), out);
}

nvmlReturn_t read_fabric_clique(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_completed_fabric(subject->device, &info);

    return code == NVML_SUCCESS ? query_tell(subject, element, info.cliqueId, out) : code;
}

nvmlReturn_t read_fabric_cluster(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_completed_fabric(subject->device, &info);
    int at = 0;

    (void)element;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < sizeof(info.clusterUuid); i++)
        at += snprintf(out + at, (size_t)(QUERY_VALUE_BYTES - at), "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.clusterUuid[i]);
    return code;
}

nvmlReturn_t read_fabric_health(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_completed_fabric(subject->device, &info);

    return code == NVML_SUCCESS
               ? query_tell(subject, element, info.healthMask >> element->which & ((1u << element->scope) - 1), out)
               : code;
}

nvmlReturn_t read_fabric_summary(const struct subject *subject, const struct element *element, char *out)
{
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t code = get_completed_fabric(subject->device, &info);

    return code == NVML_SUCCESS ? query_tell(subject, element, info.healthSummary, out) : code;
}
