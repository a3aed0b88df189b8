/* Which GPUs a matrix of nvidia-smi topo has: those that may be seen. */
#define _GNU_SOURCE
#include "topo_gpus.h"

nvmlReturn_t smi_find_topology(struct smi_topology *gpus)
{
    unsigned int count;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);

    gpus->count = 0;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++) {
        struct smi_topology_gpu *gpu = &gpus->gpu[gpus->count];
        code = nvmlDeviceGetHandleByIndex_v2(i, &gpu->device);
        gpu->index = i;
        if (code == NVML_SUCCESS)
            gpus->count++;
        else if (code == NVML_ERROR_NO_PERMISSION || code == NVML_ERROR_NOT_FOUND)
            code = NVML_SUCCESS;
    }
    gpus->complete = gpus->count == count;
    return code;
}
