/* Contexts: there are none, which a program may ask before it would make one. */
#define _GNU_SOURCE
#include "driver_api.h"

CUDA_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    nvmlDevice_t handle;
    CUresult code = sn_device(device, &handle);

    if (code == CUDA_SUCCESS && (flags == NULL || active == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        *flags = 0;
        *active = 0;
    }
    return code;
}

CUDA_EXPORT CUresult cuCtxGetCurrent(void **context)
{
    if (sn_ordinals() == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = NULL;
    return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    if (sn_ordinals() == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return device == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
}
