/* cuInit and what it fixes: which devices this process has, and in which order.
 *
 * It fails with SYSTEM_NOT_READY while a GPU waits for its fabric, as where no fabric manager runs. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../nvml/handles.h"
#include "../nvml/init.h"
#include "driver_api.h"

/* nvmlGpuFabricState_t */
enum { FABRIC_NOT_SUPPORTED, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS };

static struct sn_ordinals fixed;
static const struct sn_ordinals *current;

const struct sn_ordinals *sn_ordinals(void)
{
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

CUresult sn_result(nvmlReturn_t code)
{
    switch (code) {
    case NVML_SUCCESS:
        return CUDA_SUCCESS;
    case NVML_ERROR_UNINITIALIZED:
        return CUDA_ERROR_NOT_INITIALIZED;
    case NVML_ERROR_INVALID_ARGUMENT:
        return CUDA_ERROR_INVALID_VALUE;
    case NVML_ERROR_NOT_SUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return CUDA_ERROR_NO_DEVICE;
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED:
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    case NVML_ERROR_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_UNKNOWN;
    }
}

CUresult sn_device(CUdevice device, nvmlDevice_t *handle)
{
    const struct sn_ordinals *ordinals = sn_ordinals();

    if (ordinals == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device < 0 || (unsigned int)device >= ordinals->count)
        return CUDA_ERROR_INVALID_DEVICE;
    *handle = ordinals->device[device];
    return CUDA_SUCCESS;
}

static bool fabric_is_pending(void)
{
    for (unsigned int index = 0; index < sn_view.count; index++) {
        nvmlDevice_t device = sn_handle(sn_view.device[index]);
        unsigned int state;
        if (sn_get_word(device, offsetof(struct sn_device, fabric_state), &state) == NVML_SUCCESS &&
            (state == FABRIC_NOT_STARTED || state == FABRIC_IN_PROGRESS))
            return true;
    }
    return false;
}

/* Fixes the devices, under the lock and with NVML initialised. */
static CUresult fix(void)
{
    if (current != NULL)
        return CUDA_SUCCESS;
    if (fabric_is_pending())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    sn_arrange(&fixed, getenv("CUDA_DEVICE_ORDER"), getenv("CUDA_VISIBLE_DEVICES"));
    if (fixed.count == 0)
        return CUDA_ERROR_NO_DEVICE;
    __atomic_store_n(&current, &fixed, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

/* The devices stay as they are, and NVML initialised, for ever after a success. */
CUDA_EXPORT CUresult cuInit(unsigned int flags)
{
    nvmlReturn_t started;
    CUresult code;

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sn_ordinals() != NULL)
        return CUDA_SUCCESS;
    started = nvmlInitWithFlags(0);
    if (started != NVML_SUCCESS)
        return sn_result(started);
    sn_lock();
    code = fix();
    sn_unlock();
    if (code != CUDA_SUCCESS)
        nvmlShutdown();
    return code;
}

CUresult sn_driver_version(int *version)
{
    return sn_result(nvmlSystemGetCudaDriverVersion_v2(version));
}

CUDA_EXPORT CUresult cuDriverGetVersion(int *version)
{
    return version == NULL ? CUDA_ERROR_INVALID_VALUE : sn_driver_version(version);
}
