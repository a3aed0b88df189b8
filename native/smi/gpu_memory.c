/* Columns about memory and what went wrong in it. */
#define _GNU_SOURCE
#include "sources.h"

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                       unsigned long long *addresses);

nvmlReturn_t smi_memory(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlMemory_v2_t memory = {.version = sizeof(memory) | 2u << 24};
    nvmlReturn_t code = nvmlDeviceGetMemoryInfo_v2(device, &memory);
    const unsigned long long parts[] = {
        [SMI_TOTAL] = memory.total,
        [SMI_RESERVED] = memory.reserved,
        [SMI_USED] = memory.used,
        [SMI_FREE] = memory.free,
    };

    *out = parts[which];
    return code;
}

nvmlReturn_t smi_protected_memory(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlMemory_t memory = {.total = 0};
    nvmlReturn_t code = nvmlDeviceGetConfComputeProtectedMemoryUsage(device, &memory);

    *out = which == SMI_TOTAL ? memory.total : which == SMI_USED ? memory.used : memory.free;
    return code;
}

nvmlReturn_t smi_ecc_errors(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int location = which % SMI_AGGREGATE;
    int counter = (which & SMI_AGGREGATE) != 0;
    int type = (which & SMI_UNCORRECTED) != 0;

    if (location == SMI_EVERYWHERE)
        return nvmlDeviceGetTotalEccErrors(device, type, counter, out);
    return nvmlDeviceGetMemoryErrorCounter(device, type, counter, (int)location, out);
}

nvmlReturn_t smi_retired_pages(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetRetiredPages(device, which, &count, NULL);

    *out = count;
    return code == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : code;
}
