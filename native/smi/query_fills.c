/* Functions that have several answers, each in the shape that a row of the table can name. */
#define _GNU_SOURCE
#include "query_reads.h"

nvmlReturn_t fill_bbx(nvmlDevice_t device, void *bbx)
{
    struct bbx *out = bbx;
    unsigned long duration = 0;
    nvmlReturn_t code = nvmlDeviceGetLastBBXFlushTime(device, &out->time_us, &duration);

    out->duration_us = duration;
    return code;
}

nvmlReturn_t fill_c2c(nvmlDevice_t device, void *mode)
{
    return nvmlDeviceGetC2cModeInfoV(device, mode);
}

nvmlReturn_t fill_pci(nvmlDevice_t device, void *pci)
{
    nvmlPciInfoExt_v1_t *out = pci;

    out->version = SN_TAG(nvmlPciInfoExt_v1_t, 1);
    return nvmlDeviceGetPciInfoExt(device, out);
}

nvmlReturn_t fill_memory(nvmlDevice_t device, void *memory)
{
    nvmlMemory_v2_t *out = memory;

    out->version = SN_TAG(nvmlMemory_v2_t, 2);
    return nvmlDeviceGetMemoryInfo_v2(device, out);
}

nvmlReturn_t fill_bar1(nvmlDevice_t device, void *memory)
{
    return nvmlDeviceGetBAR1MemoryInfo(device, memory);
}

nvmlReturn_t fill_protected_memory(nvmlDevice_t device, void *memory)
{
    return nvmlDeviceGetConfComputeProtectedMemoryUsage(device, memory);
}

nvmlReturn_t fill_rates(nvmlDevice_t device, void *rates)
{
    return nvmlDeviceGetUtilizationRates(device, rates);
}

nvmlReturn_t fill_encoder_stats(nvmlDevice_t device, void *stats)
{
    nvmlFBCStats_t *out = stats;

    return nvmlDeviceGetEncoderStats(device, &out->sessionsCount, &out->averageFPS, &out->averageLatency);
}

nvmlReturn_t fill_fbc_stats(nvmlDevice_t device, void *stats)
{
    return nvmlDeviceGetFBCStats(device, stats);
}

nvmlReturn_t fill_remapped(nvmlDevice_t device, void *remapped)
{
    struct remapped *out = remapped;

    return nvmlDeviceGetRemappedRows(device, &out->correctable, &out->uncorrectable, &out->pending, &out->failed);
}

nvmlReturn_t fill_histogram(nvmlDevice_t device, void *banks)
{
    return nvmlDeviceGetRowRemapperHistogram(device, banks);
}

nvmlReturn_t fill_attributes(nvmlDevice_t device, void *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}

nvmlReturn_t word_customer_boost(nvmlDevice_t device, unsigned int *mhz)
{
    return nvmlDeviceGetClock(device, NVML_CLOCK_GRAPHICS, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX, mhz);
}

nvmlReturn_t word_addressing_mode(nvmlDevice_t device, unsigned int *mode)
{
    nvmlDeviceAddressingMode_v1_t info = {.version = SN_TAG(nvmlDeviceAddressingMode_v1_t, 1)};
    nvmlReturn_t code = nvmlDeviceGetAddressingMode(device, &info);

    *mode = info.value;
    return code;
}

nvmlReturn_t word_sparse_operation_mode(nvmlDevice_t device, unsigned int *mode)
{
    return sn_get_word(device, offsetof(struct sn_device, sparse_operation_mode), mode);
}
