/* Who a device is: name, UUID, versions of its parts, and the modes that are more than one word. */
#define _GNU_SOURCE
#include "handles.h"
#include "mig.h"

#define TEXT(member) offsetof(struct sn_device, member), sizeof(((struct sn_device *)0)->member.value)

NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    if (sn_is_mig_handle(device))
        return sn_mig_text(device, false, name, length);
    return sn_get_text(device, TEXT(name), name, length);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    if (sn_is_mig_handle(device))
        return sn_mig_text(device, true, uuid, length);
    return sn_get_text(device, TEXT(uuid), uuid, length);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char *version,
                                                     unsigned int length)
{
    switch (object) {
    case NVML_INFOROM_OEM:
        return sn_get_text(device, TEXT(inforom_oem_object), version, length);
    case NVML_INFOROM_ECC:
        return sn_get_text(device, TEXT(inforom_ecc_object), version, length);
    case NVML_INFOROM_POWER:
        return sn_get_text(device, TEXT(inforom_pwr_object), version, length);
    case NVML_INFOROM_DEN:
        return sn_refuse_device(device);
    default:
        return sn_bad_argument(device);
    }
}

/* Healthy unless lost: no profile has a corrupted infoROM. */
NVML_EXPORT nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    char version[sizeof(((struct sn_device *)0)->inforom_image_version.value)];

    return sn_get_text(device, TEXT(inforom_image_version), version, sizeof(version));
}

/* The header gives this buffer no length: it has 64 bytes. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return sn_get_text(device, TEXT(gsp_firmware_version), version, 64);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled,
                                                      unsigned int *by_default)
{
    unsigned int mode;
    nvmlReturn_t code;

    if (enabled == NULL || by_default == NULL)
        return sn_bad_argument(device);
    code = sn_get_word(device, offsetof(struct sn_device, gsp_firmware_mode), &mode);
    if (code == NVML_SUCCESS) {
        *enabled = mode;
        *by_default = mode;
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device, unsigned long long *timestamp,
                                                       unsigned long *duration_us)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, inforom_bbx_flush_time_us)},
        {SN_WIDE, offsetof(struct sn_device, inforom_bbx_flush_duration_us)},
    };
    uint64_t values[2];
    nvmlReturn_t code;

    if (timestamp == NULL || duration_us == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 2, values);
    if (code == NVML_SUCCESS) {
        *timestamp = values[0];
        *duration_us = (unsigned long)values[1];
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    return sn_get_pair(device, offsetof(struct sn_device, compute_capability_major),
                       offsetof(struct sn_device, compute_capability_minor), (unsigned int *)major,
                       (unsigned int *)minor);
}

/* nvidia-smi gives no pointer for the half that it does not want. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device, unsigned int *current,
                                                       unsigned int *pending)
{
    unsigned int now;
    unsigned int then;
    nvmlReturn_t code = sn_get_pair(device, offsetof(struct sn_device, gpu_operation_mode_current),
                                    offsetof(struct sn_device, gpu_operation_mode_pending), &now, &then);

    if (code == NVML_SUCCESS && current != NULL)
        *current = now;
    if (code == NVML_SUCCESS && pending != NULL)
        *pending = then;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *same)
{
    unsigned int first;
    unsigned int second;
    nvmlReturn_t code = sn_get_word(device1, offsetof(struct sn_device, board_id), &first);

    if (code == NVML_SUCCESS)
        code = sn_get_word(device2, offsetof(struct sn_device, board_id), &second);
    if (code != NVML_SUCCESS)
        return code;
    if (same == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *same = first == second;
    return NVML_SUCCESS;
}

/* No simulated board has a bridge chip. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device, nvmlBridgeChipHierarchy_t *hierarchy)
{
    return hierarchy == NULL ? sn_bad_argument(device) : sn_refuse_device(device);
}
