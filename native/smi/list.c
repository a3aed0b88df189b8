/* nvidia-smi -L: one line a GPU, one more for each of its MIG devices. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "smi.h"

/* A MIG device's name ends in "MIG 2g.20gb"; a name that does not is not listed. */
static void list_mig(nvmlDevice_t device)
{
    unsigned int most = 0;
    unsigned int listed = 0;

    if (nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
        return;
    for (unsigned int i = 0; i < most; i++) {
        char name[SMI_NAME_BYTES];
        char uuid[SMI_NAME_BYTES];
        const char *profile;
        nvmlDevice_t mig;
        if (nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != NVML_SUCCESS ||
            nvmlDeviceGetName(mig, name, sizeof(name)) != NVML_SUCCESS)
            continue;
        profile = strstr(name, "MIG ");
        if (profile == NULL || nvmlDeviceGetUUID(mig, uuid, sizeof(uuid)) != NVML_SUCCESS)
            continue;
        printf("  MIG %-11s Device %2u: (UUID: %s)\n", profile + strlen("MIG "), listed++, uuid);
    }
}

/* SUCCESS, or why nothing can be said of the device. */
static nvmlReturn_t list_device(unsigned int index, nvmlDevice_t device)
{
    char name[SMI_NAME_BYTES];
    char uuid[SMI_NAME_BYTES];
    char bus_id[SMI_BUS_ID_BYTES];
    nvmlReturn_t code = nvmlDeviceGetName(device, name, sizeof(name));

    if (code != NVML_SUCCESS) {
        smi_bus_id(index, bus_id);
        printf("Unable to determine the product name for gpu %s: %s\n", bus_id, smi_words(code));
        return code;
    }
    code = nvmlDeviceGetUUID(device, uuid, sizeof(uuid));
    printf("GPU %u: %s (UUID: %s)\n", index, name, code == NVML_SUCCESS ? uuid : smi_words(code));
    list_mig(device);
    return NVML_SUCCESS;
}

int smi_list(void)
{
    unsigned int count;
    nvmlReturn_t worst = NVML_SUCCESS;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);

    if (code != NVML_SUCCESS) {
        printf("Unable to determine the number of available GPUs: %s\n", smi_words(code));
        return smi_exit_code(code);
    }
    if (count == 0)
        puts("No devices found.");
    for (unsigned int i = 0; i < count; i++) {
        nvmlDevice_t device;
        code = nvmlDeviceGetHandleByIndex_v2(i, &device);
        if (code == NVML_SUCCESS) {
            code = list_device(i, device);
        } else {
            char bus_id[SMI_BUS_ID_BYTES];
            smi_bus_id(i, bus_id);
            printf("Unable to determine the device handle for gpu %s: %s\n", bus_id, smi_handle_words(code));
        }
        if (code != NVML_SUCCESS)
            worst = code;
    }
    return smi_exit_code(worst);
}
