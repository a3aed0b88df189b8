/* The kinds of GPU instance that a board can be partitioned into: sizes, engines, places, and how many still fit. */
#define _GNU_SOURCE
#include "mig.h"

/* Copies the profile that has this number, or with `by_id` this id; `on` tells whether the GPU is in MIG mode. */
static nvmlReturn_t copy_profile(nvmlDevice_t device, bool by_id, unsigned int which, struct sn_mig_profile *copy,
                                 bool *on)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code != NVML_SUCCESS)
            continue;
        code = by_id && read.device->mig_profile[0].present ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
        for (unsigned int i = 0; i < SN_MAX_MIG_PROFILES; i++) {
            const struct sn_mig_profile *profile = &read.device->mig_profile[i];
            if (profile->present && (by_id ? profile->id : profile->number) == which) {
                *copy = *profile;
                code = NVML_SUCCESS;
            }
        }
        *on = read.device->mig_mode_current.status == NVML_SUCCESS && read.device->mig_mode_current.value != 0;
        if (read.device->mig_mode_current.status != NVML_SUCCESS)
            code = NVML_ERROR_NOT_SUPPORTED;
    } while (sn_again(&read, &code));
    copy->name[sizeof(copy->name) - 1] = '\0';
    if (copy->placement_count > sizeof(copy->placement))
        copy->placement_count = sizeof(copy->placement);
    return code;
}

nvmlReturn_t sn_mig_profile(nvmlDevice_t device, unsigned int number, struct sn_mig_profile *copy)
{
    bool on;

    if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return sn_bad_argument(device);
    return copy_profile(device, false, number, copy, &on);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number,
                                                             nvmlGpuInstanceProfileInfo_t *info)
{
    struct sn_mig_profile from = {0};
    nvmlReturn_t code = info == NULL ? sn_bad_argument(device) : sn_mig_profile(device, number, &from);

    if (code == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            .id = from.id,
            .sliceCount = from.slices,
            .instanceCount = from.instances,
            .multiprocessorCount = from.multiprocessors,
            .copyEngineCount = from.copy_engines,
            .decoderCount = from.decoders,
            .encoderCount = from.encoders,
            .jpegCount = from.jpegs,
            .ofaCount = from.ofas,
            .memorySizeMB = from.memory_mb,
        };
    return code;
}

/* Versions 2 and 3 have one size; which it is says the tag. No instance reaches another's memory (P2P). */
static nvmlReturn_t put_tagged(nvmlGpuInstanceProfileInfo_v2_t *info, const struct sn_mig_profile *from)
{
    nvmlGpuInstanceProfileInfo_v3_t *third = (nvmlGpuInstanceProfileInfo_v3_t *)(void *)info;

    if (info->version == SN_TAG(nvmlGpuInstanceProfileInfo_v3_t, 3)) {
        *third = (nvmlGpuInstanceProfileInfo_v3_t){
            .version = info->version,
            .id = from->id,
            .sliceCount = from->slices,
            .instanceCount = from->instances,
            .multiprocessorCount = from->multiprocessors,
            .copyEngineCount = from->copy_engines,
            .decoderCount = from->decoders,
            .encoderCount = from->encoders,
            .jpegCount = from->jpegs,
            .ofaCount = from->ofas,
            .memorySizeMB = from->memory_mb,
            .capabilities = from->graphics ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0,
        };
        memcpy(third->name, from->name, sizeof(from->name));
        return NVML_SUCCESS;
    }
    if (info->version != SN_TAG(nvmlGpuInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *info = (nvmlGpuInstanceProfileInfo_v2_t){
        .version = info->version,
        .id = from->id,
        .sliceCount = from->slices,
        .instanceCount = from->instances,
        .multiprocessorCount = from->multiprocessors,
        .copyEngineCount = from->copy_engines,
        .decoderCount = from->decoders,
        .encoderCount = from->encoders,
        .jpegCount = from->jpegs,
        .ofaCount = from->ofas,
        .memorySizeMB = from->memory_mb,
    };
    memcpy(info->name, from->name, sizeof(from->name));
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                              nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct sn_mig_profile from = {0};
    nvmlReturn_t code = info == NULL ? sn_bad_argument(device) : sn_mig_profile(device, number, &from);

    return code == NVML_SUCCESS ? put_tagged(info, &from) : code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct sn_mig_profile from = {0};
    bool on;
    nvmlReturn_t code = info == NULL ? sn_bad_argument(device) : copy_profile(device, true, id, &from, &on);

    return code == NVML_SUCCESS ? put_tagged(info, &from) : code;
}

/* Nothing can be made on a GPU that is not in MIG mode. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id,
                                                                   unsigned int *count)
{
    struct sn_mig_profile from = {0};
    bool on = false;
    nvmlReturn_t code = count == NULL ? sn_bad_argument(device) : copy_profile(device, true, id, &from, &on);

    if (code == NVML_SUCCESS)
        *count = on ? from.remaining : 0;
    return code;
}

/* Where instances of the profile can begin, whether or not something is there already. A null array asks how many; any
 * other has room for all, whatever *count says before. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                                       nvmlGpuInstancePlacement_t *placements,
                                                                       unsigned int *count)
{
    struct sn_mig_profile from = {0};
    bool on;
    nvmlReturn_t code = count == NULL ? sn_bad_argument(device) : copy_profile(device, true, id, &from, &on);

    if (code != NVML_SUCCESS)
        return code;
    *count = from.placement_count;
    for (unsigned int i = 0; placements != NULL && i < from.placement_count; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){from.placement[i], from.size};
    return NVML_SUCCESS;
}

/* The first of its name had to be given an array. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id,
                                                                    nvmlGpuInstancePlacement_t *placements,
                                                                    unsigned int *count)
{
    if (placements == NULL)
        return sn_bad_argument(device);
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}
