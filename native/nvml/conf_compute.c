/* Confidential computing: boards since Hopper could do it, and none of them does. */
#define _GNU_SOURCE
#include "access.h"

#define ARCHITECTURE_HOPPER 9
#define BYTES_PER_KIB 1024

static nvmlReturn_t can_be_confidential(nvmlDevice_t device)
{
    unsigned int architecture;
    nvmlReturn_t code = sn_get_word(device, offsetof(struct sn_device, architecture), &architecture);

    return code == NVML_SUCCESS && architecture < ARCHITECTURE_HOPPER ? NVML_ERROR_NOT_SUPPORTED : code;
}

/* SUCCESS if a visible board could, and there is somewhere to say so. */
static nvmlReturn_t any_can(const void *out)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int visible = 0; visible < sn_view.count; visible++)
        if (can_be_confidential(sn_handle(sn_view.device[visible])) == NVML_SUCCESS)
            return NVML_SUCCESS;
    return NVML_ERROR_NOT_SUPPORTED;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *capabilities)
{
    nvmlReturn_t code = any_can(capabilities);

    if (code == NVML_SUCCESS)
        *capabilities = (nvmlConfComputeSystemCaps_t){.cpuCaps = 0, .gpusCaps = 1};
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    nvmlReturn_t code = any_can(state);

    if (code == NVML_SUCCESS)
        *state = (nvmlConfComputeSystemState_t){0, 0, 0};
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *accepting)
{
    nvmlReturn_t code = any_can(accepting);

    if (code == NVML_SUCCESS)
        *accepting = 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_v1_t *settings)
{
    nvmlReturn_t code = any_can(settings);

    if (code != NVML_SUCCESS)
        return code;
    if (settings->version != SN_TAG(nvmlSystemConfComputeSettings_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *settings = (nvmlSystemConfComputeSettings_v1_t){.version = settings->version};
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, nvmlConfComputeMemSizeInfo_t *info)
{
    unsigned long long total;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = can_be_confidential(device);
    if (code == NVML_SUCCESS)
        code = sn_get_wide(device, offsetof(struct sn_device, memory_total_bytes), &total);
    if (code == NVML_SUCCESS)
        *info = (nvmlConfComputeMemSizeInfo_t){0, total / BYTES_PER_KIB};
    return code;
}
