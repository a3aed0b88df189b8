/* Structs about the board and its place in a rack: PDI, addressing, capabilities, C2C, platform, power profiles, memory
 * encryption; and the numbers that follow from what else is known of it. */
#define _GNU_SOURCE
#include "access.h"

#define TEXT(member) offsetof(struct sn_device, member), sizeof(((struct sn_device *)0)->member.value)
#define NO_PLACE 0xff
#define FIRST_IRQ 128

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

/* A board outside a chassis has no slot there. */
static unsigned char place(const struct sn_word *word)
{
    return word->status == NVML_SUCCESS ? (unsigned char)word->value : NO_PLACE;
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
            code = (nvmlReturn_t)from->platform_host_id.status;
            memset(info, 0, sizeof(*info));
            memcpy(info->chassisSerialNumber, from->platform_chassis_serial_number.value,
                   sizeof(info->chassisSerialNumber) - 1);
            for (unsigned int i = 0; from->platform_fabric_guid.status == NVML_SUCCESS && i < 8; i++)
                info->ibGuid[i] = (unsigned char)(from->platform_fabric_guid.value >> (56 - 8 * i));
            info->slotNumber = place(&from->platform_slot_number);
            info->trayIndex = place(&from->platform_tray_index);
            info->hostId = (unsigned char)from->platform_host_id.value;
            info->peerType = (unsigned char)from->platform_peer_type.value;
            info->moduleId = (unsigned char)from->platform_module_id.value;
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

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device, nvmlDramEncryptionInfo_v1_t *current,
                                                         nvmlDramEncryptionInfo_v1_t *pending)
{
    unsigned int now;
    unsigned int then;
    nvmlReturn_t code;

    if (current == NULL || pending == NULL)
        return sn_bad_argument(device);
    code = sn_get_pair(device, offsetof(struct sn_device, dram_encryption_mode_current),
                       offsetof(struct sn_device, dram_encryption_mode_pending), &now, &then);
    if (code == NVML_SUCCESS && (current->version != SN_TAG(nvmlDramEncryptionInfo_v1_t, 1) ||
                                 pending->version != SN_TAG(nvmlDramEncryptionInfo_v1_t, 1)))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        current->encryptionState = now;
        pending->encryptionState = then;
    }
    return code;
}

static void put_mask(nvmlMask255_t *mask, uint64_t bits)
{
    memset(mask, 0, sizeof(*mask));
    mask->mask[0] = (unsigned int)bits;
    mask->mask[1] = (unsigned int)(bits >> 32);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(
    nvmlDevice_t device, nvmlWorkloadPowerProfileCurrentProfiles_v1_t *profiles)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, power_profiles_requested)},
        {SN_WIDE, offsetof(struct sn_device, power_profiles_enforced)},
    };
    uint64_t values[2];
    nvmlReturn_t code;

    if (profiles == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 2, values);
    if (code == NVML_SUCCESS && profiles->version != SN_TAG(nvmlWorkloadPowerProfileCurrentProfiles_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        put_mask(&profiles->perfProfilesMask, values[0] | values[1]);
        put_mask(&profiles->requestedProfilesMask, values[0]);
        put_mask(&profiles->enforcedProfilesMask, values[1]);
    }
    return code;
}

/* FNV-1a of the infoROM's version and the board's part number: the same for the same configuration. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned int *checksum)
{
    static const struct {
        size_t at;
        size_t size;
    } parts[] = {
        {TEXT(inforom_image_version)},
        {TEXT(board_part_number)},
    };
    unsigned int sum = 2166136261u;

    if (checksum == NULL)
        return sn_bad_argument(device);
    for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char text[SN_LONGEST_TEXT + 1];
        nvmlReturn_t code = sn_get_text(device, parts[i].at, parts[i].size, text, sizeof(text));
        if (code != NVML_SUCCESS)
            return code;
        for (const char *c = text; *c != '\0'; c++)
            sum = (sum ^ (unsigned char)*c) * 16777619u;
    }
    *checksum = sum;
    return NVML_SUCCESS;
}

/* Interrupts are numbered like the device files, from where a machine's own devices end. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int *irq)
{
    unsigned int minor;
    nvmlReturn_t code = irq == NULL ? sn_bad_argument(device)
                                    : sn_get_word(device, offsetof(struct sn_device, minor_number), &minor);

    if (code == NVML_SUCCESS)
        *irq = FIRST_IRQ + minor;
    return code;
}

/* Nothing is licensed to a board that is not virtual. */
static nvmlReturn_t no_features(nvmlDevice_t device, sn_grid_features *features)
{
    nvmlReturn_t code = features == NULL ? sn_bad_argument(device) : sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *features = (sn_grid_features){0, 0};
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t device, sn_grid_features *features)
{
    return no_features(device, features);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t device, sn_grid_features *features)
{
    return no_features(device, features);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t device, sn_grid_features *features)
{
    return no_features(device, features);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device, sn_grid_features *features)
{
    return no_features(device, features);
}
