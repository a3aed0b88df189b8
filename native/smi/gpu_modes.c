/* Columns about how a GPU is set up. */
#define _GNU_SOURCE
#include <stdio.h>

#include "sources.h"

#define DEPRECATED 26
#define FABRIC_COMPLETED 3
#define FIRST_WITHOUT_DISPLAY_MODE 580
#define FIELD_RESET_REQUIRED 226
#define FIELD_DRAIN_RECOMMENDED 227

typedef nvmlReturn_t pair_getter(nvmlDevice_t device, unsigned int *first, unsigned int *second);

pair_getter nvmlDeviceGetGspFirmwareMode;
pair_getter nvmlDeviceGetGpuOperationMode;
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);

nvmlReturn_t smi_mode(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    static pair_getter *const getters[] = {
        [SMI_ECC_CURRENT] = nvmlDeviceGetEccMode,
        [SMI_ECC_PENDING] = nvmlDeviceGetEccMode,
        [SMI_MIG_CURRENT] = nvmlDeviceGetMigMode,
        [SMI_MIG_PENDING] = nvmlDeviceGetMigMode,
        [SMI_GSP_CURRENT] = nvmlDeviceGetGspFirmwareMode,
        [SMI_GSP_DEFAULT] = nvmlDeviceGetGspFirmwareMode,
        [SMI_GOM_CURRENT] = nvmlDeviceGetGpuOperationMode,
        [SMI_GOM_PENDING] = nvmlDeviceGetGpuOperationMode,
    };
    nvmlC2cModeInfo_v1_t c2c = {0};
    unsigned int first = 0;
    unsigned int second = 0;
    nvmlReturn_t code;

    if (which == SMI_C2C) {
        code = nvmlDeviceGetC2cModeInfoV(device, &c2c);
        *out = c2c.isC2cEnabled;
        return code;
    }
    code = getters[which](device, &first, &second);
    *out = which % 2 == 0 ? first : second;
    return code;
}

/* Deprecated since 580, whatever the library says. */
nvmlReturn_t smi_display_mode(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int mode = 0;
    nvmlReturn_t code = nvmlDeviceGetDisplayMode(device, &mode);

    (void)which;
    *out = mode;
    return smi_driver_release() < FIRST_WITHOUT_DISPLAY_MODE ? code : (nvmlReturn_t)DEPRECATED;
}

/* A public field up to 550, an internal one since. */
nvmlReturn_t smi_reset_status(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlReturn_t (*internal)(nvmlDevice_t, int, nvmlFieldValue_t *) = (void *)smi_slot(SMI_SLOT_FIELDS);
    bool is_internal = smi_driver_release() >= 555;
    nvmlFieldValue_t field = {.fieldId = FIELD_RESET_REQUIRED + which};
    nvmlReturn_t code;

    if (is_internal)
        field.fieldId = 4 + which;
    code = is_internal ? internal(device, 1, &field) : nvmlDeviceGetFieldValues(device, 1, &field);
    if (code == NVML_SUCCESS)
        code = field.nvmlReturn;
    *out = field.value.uiVal;
    return code;
}

static void put_cluster(const nvmlGpuFabricInfo_v2_t *info, char out[SMI_CELL_BYTES])
{
    for (unsigned int i = 0; i < sizeof(info->clusterUuid); i++)
        out += sprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info->clusterUuid[i]);
}

/* Up to 555 state and status say which of the two they are; since, where there is no fabric, all say so without
 * brackets. */
nvmlReturn_t smi_fabric(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    static const char *const states[] = {"N/A", "Not Started", "In Progress", "Completed"};
    nvmlGpuFabricInfo_v2_t info = {.version = sizeof(info) | 2u << 24};
    nvmlReturn_t code = nvmlDeviceGetGpuFabricInfoV(row->device, &info);
    bool named = smi_driver_release() <= 555;

    if (!named && (code == NVML_ERROR_NOT_SUPPORTED || (code == NVML_SUCCESS && info.state == 0))) {
        snprintf(out, SMI_CELL_BYTES, "N/A");
        return NVML_SUCCESS;
    }
    if (code != NVML_SUCCESS)
        return code;
    switch (which) {
    case SMI_FABRIC_STATE:
        snprintf(out, SMI_CELL_BYTES, "%s%s", named ? "state  " : "",
                 info.state <= FABRIC_COMPLETED ? states[info.state] : "N/A");
        break;
    case SMI_FABRIC_STATUS:
        snprintf(out, SMI_CELL_BYTES, "%s%s", named ? "status " : "",
                 info.state == FABRIC_COMPLETED ? nvmlErrorString(info.status) : "N/A");
        break;
    case SMI_FABRIC_CLIQUE:
        smi_decimal(info.cliqueId, out);
        break;
    default:
        put_cluster(&info, out);
        break;
    }
    return NVML_SUCCESS;
}
