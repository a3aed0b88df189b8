/* Accounting: boards that can do it have accounted for nobody yet. */
#define _GNU_SOURCE
#include "access.h"

static nvmlReturn_t can_account(nvmlDevice_t device)
{
    unsigned int mode;

    return sn_get_word(device, offsetof(struct sn_device, accounting_mode), &mode);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
    nvmlReturn_t code = count == NULL ? sn_bad_argument(device) : can_account(device);

    (void)pids;
    if (code == NVML_SUCCESS)
        *count = 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, void *stats)
{
    nvmlReturn_t code = stats == NULL ? sn_bad_argument(device) : can_account(device);

    (void)pid;
    return code == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : code;
}
