/* What a device can reach of another one: as NVML's P2P status says, which follows the node's topology. */
#define _GNU_SOURCE
#include "driver_api.h"

/* NVML_P2P_CAPS_INDEX_READ */
#define P2P_READ 0u

enum { PERFORMANCE_RANK = 1, ACCESS_SUPPORTED, NATIVE_ATOMIC_SUPPORTED, CUDA_ARRAY_ACCESS_SUPPORTED, ATTRIBUTES };

static CUresult reaches(nvmlDevice_t from, nvmlDevice_t to, unsigned int capability, int *yes)
{
    unsigned int status;
    CUresult code = sn_result(nvmlDeviceGetP2PStatus(from, to, capability, &status));

    if (code == CUDA_SUCCESS)
        *yes = status == NVML_P2P_STATUS_OK;
    return code;
}

/* No device is a peer of itself. */
CUDA_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    nvmlDevice_t from;
    nvmlDevice_t to;
    CUresult code = sn_device(device, &from);

    if (code == CUDA_SUCCESS)
        code = sn_device(peer, &to);
    if (code != CUDA_SUCCESS)
        return code;
    if (can == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (device == peer) {
        *can = 0;
        return CUDA_SUCCESS;
    }
    return reaches(from, to, P2P_READ, can);
}

CUDA_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice source, CUdevice target)
{
    nvmlDevice_t from;
    nvmlDevice_t to;
    CUresult code = sn_device(source, &from);

    if (code == CUDA_SUCCESS)
        code = sn_device(target, &to);
    if (code != CUDA_SUCCESS)
        return code;
    if (value == NULL || attribute < PERFORMANCE_RANK || attribute >= ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (source == target)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute == ACCESS_SUPPORTED)
        return reaches(from, to, P2P_READ, value);
    return CUDA_ERROR_NOT_SUPPORTED;
}
