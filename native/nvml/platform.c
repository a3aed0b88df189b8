/* Versioned structs about the board and its place in a rack: PDI, addressing, capabilities, C2C, platform. */
#define _GNU_SOURCE
#include "access.h"

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_v1_t *pdi)
{
    unsigned long long value;
    nvmlReturn_t code;

    if (pdi == NULL)
        return sn_bad_argument(device);
    code = sn_get_wide(device, offsetof(struct sn_device, pdi), &value);
    if (code == NVML_SUCCESS && pdi->version != SN_TAG(nvmlPdi_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        pdi->value = value;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_v1_t *mode)
{
    unsigned int value;
    nvmlReturn_t code;

    if (mode == NULL)
        return sn_bad_argument(device);
    code = sn_get_word(device, offsetof(struct sn_device, addressing_mode), &value);
    if (code == NVML_SUCCESS && mode->version != SN_TAG(nvmlDeviceAddressingMode_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        mode->value = value;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_v1_t *capabilities)
{
    unsigned int mask;
    nvmlReturn_t code;

    if (capabilities == NULL)
        return sn_bad_argument(device);
    code = sn_get_word(device, offsetof(struct sn_device, capabilities), &mask);
    if (code == NVML_SUCCESS && capabilities->version != SN_TAG(nvmlDeviceCapabilities_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        capabilities->capMask = mask;
    return code;
}

/* The one versioned name whose struct has no version. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info)
{
    return sn_get_word(device, offsetof(struct sn_device, c2c_mode), info == NULL ? NULL : &info->isC2cEnabled);
}

static nvmlReturn_t copy_platform(nvmlDevice_t device, nvmlPlatformInfo_v2_t *info)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            const struct sn_device *from = read.device;
            code = (nvmlReturn_t)from->platform_chassis_serial_number.status;
            memset(info, 0, sizeof(*info));
            memcpy(info->chassisSerialNumber, from->platform_chassis_serial_number.value,
                   sizeof(info->chassisSerialNumber) - 1);
            for (unsigned int i = 0; from->platform_fabric_guid.status == NVML_SUCCESS && i < 8; i++)
                info->ibGuid[i] = (unsigned char)(from->platform_fabric_guid.value >> (56 - 8 * i));
            info->slotNumber = (unsigned char)from->platform_slot_number.value;
            info->trayIndex = (unsigned char)from->platform_tray_index.value;
            info->hostId = (unsigned char)from->platform_host_id.value;
            info->peerType = (unsigned char)from->platform_peer_type.value;
            info->moduleId = (unsigned char)from->platform_module_id.value;
            if (code != NVML_SUCCESS)
                code = (nvmlReturn_t)from->platform_host_id.status;
        }
    } while (sn_again(&read, &code));
    return code;
}

/* Version 1 has the same size and places, other names. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_v2_t *info)
{
    nvmlPlatformInfo_v2_t copy;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = copy_platform(device, &copy);
    if (code != NVML_SUCCESS)
        return code;
    if (info->version != SN_TAG(nvmlPlatformInfo_v2_t, 1) && info->version != SN_TAG(nvmlPlatformInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    copy.version = info->version;
    *info = copy;
    return NVML_SUCCESS;
}
