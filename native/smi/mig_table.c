/* The table of MIG devices: those of one GPU instance share its memory and stand together. */
#define _GNU_SOURCE
#include <stdio.h>

#include "row.h"
#include "smi.h"

struct mig_device {
    unsigned int gpu;
    unsigned int index;
    unsigned int gpu_instance;
    unsigned int compute_instance;
    nvmlDeviceAttributes_t attributes;
    nvmlReturn_t ecc_code;
    unsigned long long ecc_errors;
    nvmlMemory_v2_t memory;
    nvmlBAR1Memory_t bar1;
};

/* False where there is no such MIG device or something of it cannot be told: it is left out then. Memory is the
 * instance's and read with its first MIG device. */
static bool read_mig_device(nvmlDevice_t device, unsigned int index, bool first_of_instance, struct mig_device *mig)
{
    nvmlDevice_t handle;

    mig->memory.version = SN_TAG(nvmlMemory_v2_t, 2);
    if (nvmlDeviceGetMigDeviceHandleByIndex(device, index, &handle) != NVML_SUCCESS ||
        nvmlDeviceGetGpuInstanceId(handle, &mig->gpu_instance) != NVML_SUCCESS ||
        nvmlDeviceGetIndex(handle, &mig->index) != NVML_SUCCESS ||
        nvmlDeviceGetComputeInstanceId(handle, &mig->compute_instance) != NVML_SUCCESS ||
        nvmlDeviceGetAttributes_v2(handle, &mig->attributes) != NVML_SUCCESS)
        return false;
    mig->ecc_code = nvmlDeviceGetMemoryErrorCounter(handle, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
                                                    NVML_MEMORY_LOCATION_SRAM, &mig->ecc_errors);
    if (mig->ecc_code != NVML_SUCCESS && mig->ecc_code != NVML_ERROR_NOT_SUPPORTED)
        return false;
    return !first_of_instance || (nvmlDeviceGetMemoryInfo_v2(handle, &mig->memory) == NVML_SUCCESS &&
                                  nvmlDeviceGetBAR1MemoryInfo(handle, &mig->bar1) == NVML_SUCCESS);
}

static void print_mig_device(const struct mig_device *mig, bool first_of_instance)
{
    const nvmlDeviceAttributes_t *attributes = &mig->attributes;
    struct row row;

    row_start(&row, "|                  |                                  |           |                       |");
    row_format(&row, 1, 4, "%3u", mig->gpu);
    row_format(&row, 5, 4, "%4u", mig->gpu_instance);
    row_format(&row, 9, 4, "%4u", mig->compute_instance);
    row_format(&row, 14, 4, "%3u", mig->index);
    if (first_of_instance)
        row_format(&row, 31, 22, "%5lluMiB / %5lluMiB", smi_mib(mig->memory.used), smi_mib(mig->memory.total));
    row_format(&row, 55, 4, "%3u", attributes->multiprocessorCount);
    if (mig->ecc_code == NVML_SUCCESS)
        row_format(&row, 61, 5, "%4llu", mig->ecc_errors);
    else
        row_format(&row, 61, 5, "%4s", smi_mark(mig->ecc_code));
    row_format(&row, 67, 4, "%3u", attributes->sharedCopyEngineCount);
    row_format(&row, 71, 4, "%3u", attributes->sharedEncoderCount);
    row_format(&row, 76, 4, "%3u", attributes->sharedDecoderCount);
    row_format(&row, 81, 4, "%3u", attributes->sharedOfaCount);
    row_format(&row, 86, 4, "%3u", attributes->sharedJpegCount);
    row_print(&row);
    row_start(&row, "|                  |                                  |           |                       |");
    if (first_of_instance)
        row_format(&row, 33, 20, "%5lluMiB / %5lluMiB", mig->bar1.bar1Used / SMI_MIB, mig->bar1.bar1Total / SMI_MIB);
    row_print(&row);
}

/* Prints the MIG devices of the instance whose first is `first`, and marks them as done. How many were printed. */
static unsigned int print_instance(nvmlDevice_t device, struct mig_device *mig, unsigned int first, unsigned int most,
                                   bool *done)
{
    unsigned int gpu_instance;

    if (!read_mig_device(device, first, true, mig))
        return 0;
    gpu_instance = mig->gpu_instance;
    print_mig_device(mig, true);
    for (unsigned int i = first + 1; i < most; i++) {
        if (!read_mig_device(device, i, false, mig) || mig->gpu_instance != gpu_instance)
            continue;
        puts("+------------------+                                  +-----------+-----------------------+");
        print_mig_device(mig, false);
        done[i] = true;
    }
    puts("+------------------+----------------------------------+-----------+-----------------------+");
    return 1;
}

/* How many instances were printed. */
static unsigned int print_mig_devices(nvmlDevice_t device)
{
    bool done[SN_MAX_MIG_DEVICES] = {false};
    struct mig_device mig;
    unsigned int printed = 0;
    unsigned int most = 0;

    if (nvmlDeviceGetIndex(device, &mig.gpu) != NVML_SUCCESS ||
        nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
        return 0;
    if (most > SN_MAX_MIG_DEVICES)
        most = SN_MAX_MIG_DEVICES;
    for (unsigned int i = 0; i < most; i++)
        if (!done[i])
            printed += print_instance(device, &mig, i, most, done);
    return printed;
}

void smi_mig_table(const struct smi_devices *devices)
{
    unsigned int printed = 0;

    puts("");
    puts("+-----------------------------------------------------------------------------------------+");
    puts("| MIG devices:                                                                            |");
    puts("+------------------+----------------------------------+-----------+-----------------------+");
    puts("| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|      Shared           |");
    puts("|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |");
    puts("|                  |                                  |        ECC|                       |");
    puts("|==================+==================================+===========+=======================|");
    for (unsigned int i = 0; i < devices->count; i++) {
        unsigned int current;
        unsigned int pending;
        if (nvmlDeviceGetMigMode(devices->handle[i], &current, &pending) == NVML_SUCCESS && current == 1)
            printed += print_mig_devices(devices->handle[i]);
    }
    if (printed == 0) {
        puts("|  No MIG devices found                                                                   |");
        puts("+-----------------------------------------------------------------------------------------+");
    }
}
