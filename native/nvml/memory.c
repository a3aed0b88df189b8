/* Frame buffer and BAR1. What is not reserved and not used is free. */
#define _GNU_SOURCE
#include "handles.h"
#include "mig.h"

static void fill(nvmlMemory_v2_t *memory, unsigned long long total, unsigned long long reserved,
                 unsigned long long used)
{
    unsigned long long taken = reserved + used;

    memory->total = total;
    memory->reserved = reserved;
    memory->used = used;
    memory->free = total > taken ? total - taken : 0;
}

static nvmlReturn_t get_memory_again(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, memory_total_bytes)},
        {SN_WIDE, offsetof(struct sn_device, memory_reserved_bytes)},
        {SN_GAUGE, offsetof(struct sn_device, memory_used_bytes)},
    };
    uint64_t values[3];
    nvmlReturn_t code;

    if (sn_is_mig_handle(device))
        return sn_mig_memory(device, memory);
    code = sn_get_cells(device, wants, 3, values);
    if (code == NVML_SUCCESS)
        fill(memory, values[0], values[1], values[2]);
    return code;
}

/* One look without a loop, as in access.h; the extraordinary goes on above. */
static inline nvmlReturn_t get_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct sn_read read;
    const struct sn_device *from;

    if (sn_open(&read, device) != NVML_SUCCESS || sn_look(&read) != NVML_SUCCESS)
        return get_memory_again(device, memory);
    from = read.device;
    if (from->memory_used_bytes.span != 0 ||
        (from->memory_total_bytes.status | from->memory_reserved_bytes.status | from->memory_used_bytes.status) != 0)
        return get_memory_again(device, memory);
    fill(memory, from->memory_total_bytes.value, from->memory_reserved_bytes.value,
         (unsigned long long)from->memory_used_bytes.base);
    return sn_whole(read.image, read.done) ? NVML_SUCCESS : get_memory_again(device, memory);
}

/* Version 1 has no `reserved`: there it counts as used. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t from;
    nvmlReturn_t code;

    if (memory == NULL)
        return sn_bad_argument(device);
    code = get_memory(device, &from);
    if (code == NVML_SUCCESS) {
        memory->total = from.total;
        memory->free = from.free;
        memory->used = from.total - from.free;
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_v2_t from;
    nvmlReturn_t code;

    if (memory == NULL)
        return sn_bad_argument(device);
    code = get_memory(device, &from);
    if (code != NVML_SUCCESS)
        return code;
    if (memory->version != SN_TAG(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = from.total;
    memory->reserved = from.reserved;
    memory->free = from.free;
    memory->used = from.used;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, bar1_memory_total_bytes)},
        {SN_WIDE, offsetof(struct sn_device, bar1_memory_used_bytes)},
    };
    uint64_t values[2];
    nvmlReturn_t code;

    if (memory == NULL)
        return sn_bad_argument(device);
    if (sn_is_mig_handle(device))
        return sn_mig_bar1(device, memory);
    code = sn_get_cells(device, wants, 2, values);
    if (code == NVML_SUCCESS) {
        memory->bar1Total = values[0];
        memory->bar1Free = values[0] - values[1];
        memory->bar1Used = values[1];
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *memory)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, cc_protected_memory_total_bytes)},
        {SN_WIDE, offsetof(struct sn_device, cc_protected_memory_used_bytes)},
    };
    uint64_t values[2];
    nvmlReturn_t code;

    if (memory == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 2, values);
    if (code == NVML_SUCCESS) {
        memory->total = values[0];
        memory->free = values[0] - values[1];
        memory->used = values[1];
    }
    return code;
}
