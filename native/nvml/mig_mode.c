/* Whether a GPU is in MIG mode. Since Hopper a change of it needs no reset, and a simulated board never does. */
#define _GNU_SOURCE
#include "access.h"
#include "orders.h"
#include "private.h"

#define AT(member) offsetof(struct sn_device, member)

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    __atomic_store_n(&sn_mig_mode_was_asked, 1, __ATOMIC_RELAXED);
    return sn_get_pair(device, AT(mig_mode_current), AT(mig_mode_pending), current, pending);
}

/* None while the GPU is not in MIG mode. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    unsigned int most;
    unsigned int mode;
    nvmlReturn_t code = sn_get_word(device, AT(mig_max_gpu_instances), &most);

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = sn_get_word(device, AT(mig_mode_current), &mode);
    if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *count = code == NVML_SUCCESS && mode != 0 ? most : 0;
    return NVML_SUCCESS;
}

/* Leaving the mode takes the partitions away; coming back, the GPU has those that its profile gives it. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *status)
{
    static const char *const assignments[] = {
        "\"mig.mode_current=disabled\",\"mig.mode_pending=disabled\"",
        "\"mig.mode_current=enabled\",\"mig.mode_pending=enabled\"",
    };
    nvmlReturn_t code = sn_forbid(device, SN_WORD, AT(mig_mode_current));

    if (code == NVML_ERROR_NO_PERMISSION)
        code = sn_may_order();
    if (code != NVML_SUCCESS)
        return code;
    if (mode > 1 || status == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = sn_order_set(device, assignments[mode]);
    if (code == NVML_SUCCESS)
        *status = NVML_SUCCESS;
    return code;
}
