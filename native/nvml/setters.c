/* Calls that change a device. Each asks, in this order: has the board what it would change, may this process change it,
 * is it a value that the board can take; then the agent lays it over the device, where every process reads it. */
#define _GNU_SOURCE
#include "setters.h"

#include <stdio.h>

#include "clocks.h"
#include "orders.h"
#include "processes.h"

#define AT(member) offsetof(struct sn_device, member)
#define SCOPE_GPU 0

static const char *const switches[] = {"disabled", "enabled"};

/* SUCCESS if the device has the word at `at` and this process may change it. */
static nvmlReturn_t may_change(nvmlDevice_t device, size_t at)
{
    nvmlReturn_t code = sn_forbid(device, SN_WORD, at);

    return code == NVML_ERROR_NO_PERMISSION ? sn_may_order() : code;
}

/* Sets a key to one of `count` words. */
static nvmlReturn_t set_word(nvmlDevice_t device, size_t at, const char *key, const char *const *words,
                             unsigned int count, unsigned int chosen)
{
    char assignment[128];
    nvmlReturn_t code = may_change(device, at);

    if (code != NVML_SUCCESS)
        return code;
    if (chosen >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(assignment, sizeof(assignment), "\"%s=%s\"", key, words[chosen]);
    return sn_order_set(device, assignment);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode)
{
    return set_word(device, AT(persistence_mode), "persistence_mode", switches, 2, mode);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned int mode)
{
    static const char *const modes[] = {"default", "exclusive_thread", "prohibited", "exclusive_process"};

    return set_word(device, AT(compute_mode), "compute_mode", modes, 4, mode);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, unsigned int mode)
{
    return set_word(device, AT(accounting_mode), "accounting.mode", switches, 2, mode);
}

/* Nobody has been accounted for. */
NVML_EXPORT nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device)
{
    return may_change(device, AT(accounting_mode));
}

/* It comes into force with the next reset. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, unsigned int mode)
{
    return set_word(device, AT(ecc_mode_current), "ecc.mode_pending", switches, 2, mode);
}

nvmlReturn_t sn_set_sparse_operation_mode(nvmlDevice_t device, unsigned int mode)
{
    return set_word(device, AT(sparse_operation_mode), "sparse_operation_mode", switches, 2, mode);
}

static nvmlReturn_t set_limit(nvmlDevice_t device, unsigned int mw)
{
    char assignments[128];
    unsigned int least;
    unsigned int most;
    nvmlReturn_t code = may_change(device, AT(power_min_limit_mw));

    if (code == NVML_SUCCESS)
        code = sn_get_pair(device, AT(power_min_limit_mw), AT(power_max_limit_mw), &least, &most);
    if (code != NVML_SUCCESS)
        return code;
    if (mw < least || mw > most)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(assignments, sizeof(assignments), "\"power.enforced_limit_mw=%u\",\"power.requested_limit_mw=%u\"", mw,
             mw);
    return sn_order_set(device, assignments);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int mw)
{
    return set_limit(device, mw);
}

/* The module's limit is not simulated as a thing of its own that can be set. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t *limit)
{
    nvmlReturn_t code = may_change(device, AT(power_min_limit_mw));

    if (code != NVML_SUCCESS)
        return code;
    if (limit == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (limit->version != SN_TAG(nvmlPowerValue_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return limit->powerScope == SCOPE_GPU ? set_limit(device, limit->powerValueMw) : NVML_ERROR_NOT_SUPPORTED;
}

/* True if the board can run its memory at this clock, and with it its graphics at that one; 0 is any. */
static bool is_supported(nvmlDevice_t device, unsigned int memory_mhz, unsigned int graphics_mhz)
{
    struct sn_clocks clocks[SN_MAX_MEMORY_CLOCKS];
    unsigned int count;

    if (sn_copy_clocks(device, clocks, &count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < count; i++) {
        if (clocks[i].memory_mhz != memory_mhz)
            continue;
        for (unsigned int j = 0; j < clocks[i].count && j < SN_MAX_GRAPHICS_CLOCKS; j++)
            if (graphics_mhz == 0 || clocks[i].graphics_mhz[j] == graphics_mhz)
                return true;
    }
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                         unsigned int graphics_mhz)
{
    char assignments[128];
    nvmlReturn_t code = may_change(device, AT(clocks_graphics_app));

    if (code != NVML_SUCCESS)
        return code;
    if (graphics_mhz == 0 || !is_supported(device, memory_mhz, graphics_mhz))
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(assignments, sizeof(assignments), "\"clocks.memory_app=%u\",\"clocks.graphics_app=%u\"", memory_mhz,
             graphics_mhz);
    return sn_order_set(device, assignments);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    nvmlReturn_t code = may_change(device, AT(clocks_graphics_app));

    return code == NVML_SUCCESS ? sn_order_reset(device, "\"clocks.memory_app\",\"clocks.graphics_app\"") : code;
}

/* A locked clock is at the upper end of its range, idle or not. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min_mhz, unsigned int max_mhz)
{
    char assignments[128];
    unsigned int most;
    nvmlReturn_t code = may_change(device, AT(clocks_graphics_max));

    if (code == NVML_SUCCESS)
        code = sn_get_word(device, AT(clocks_graphics_max), &most);
    if (code != NVML_SUCCESS)
        return code;
    if (min_mhz > max_mhz || max_mhz == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    most = max_mhz < most ? max_mhz : most;
    snprintf(assignments, sizeof(assignments), "\"clocks.graphics_current=%u\",\"clocks.sm_current=%u\"", most, most);
    return sn_order_set(device, assignments);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    nvmlReturn_t code = may_change(device, AT(clocks_graphics_max));

    return code == NVML_SUCCESS ? sn_order_reset(device, "\"clocks.graphics_current\",\"clocks.sm_current\"") : code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int min_mhz,
                                                         unsigned int max_mhz)
{
    char assignment[64];
    nvmlReturn_t code = may_change(device, AT(clocks_memory_max));

    if (code != NVML_SUCCESS)
        return code;
    if (min_mhz > max_mhz || !is_supported(device, max_mhz, 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(assignment, sizeof(assignment), "\"clocks.memory_current=%u\"", max_mhz);
    return sn_order_set(device, assignment);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    nvmlReturn_t code = may_change(device, AT(clocks_memory_max));

    return code == NVML_SUCCESS ? sn_order_reset(device, "\"clocks.memory_current\"") : code;
}

/* The counters of one kind go back to 0. */
NVML_EXPORT nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, unsigned int counter)
{
    static const char *const kinds[] = {"volatile", "aggregate"};
    static const char *const counters[] = {
        "errors.%s.single_bit.l1_cache",
        "errors.%s.single_bit.l2_cache",
        "errors.%s.single_bit.device_memory",
        "errors.%s.single_bit.register_file",
        "errors.%s.single_bit.texture_memory",
        "errors.%s.single_bit.cbu",
        "errors.%s.single_bit.total",
        "errors.%s.double_bit.l1_cache",
        "errors.%s.double_bit.l2_cache",
        "errors.%s.double_bit.device_memory",
        "errors.%s.double_bit.register_file",
        "errors.%s.double_bit.texture_memory",
        "errors.%s.double_bit.cbu",
        "errors.%s.double_bit.total",
        "sram.%s.correctable",
        "sram.%s.uncorrectable_parity",
        "sram.%s.uncorrectable_secded",
    };
    char assignments[2048] = "";
    size_t length = 0;
    nvmlReturn_t code = may_change(device, AT(ecc_mode_current));

    if (code != NVML_SUCCESS)
        return code;
    if (counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        char key[64];
        snprintf(key, sizeof(key), counters[i], kinds[counter]);
        length += (size_t)snprintf(assignments + length, sizeof(assignments) - length, "%s\"ecc.%s=0\"",
                                   i == 0 ? "" : ",", key);
    }
    return sn_order_set(device, assignments);
}

nvmlReturn_t sn_reset_gpu(nvmlDevice_t device)
{
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned int count = 0;
    unsigned int pending;
    char assignment[64];
    nvmlReturn_t code = sn_may_order();

    if (code == NVML_SUCCESS)
        code = sn_get_usage(device, ~0u, processes, &count);
    if (code != NVML_SUCCESS)
        return code;
    if (count != 0)
        return NVML_ERROR_IN_USE;
    if (sn_get_word(device, AT(ecc_mode_pending), &pending) != NVML_SUCCESS)
        return NVML_SUCCESS; /* without ECC there is nothing that a reset changes */
    code = nvmlDeviceClearEccErrorCounts(device, NVML_VOLATILE_ECC);
    if (code != NVML_SUCCESS)
        return code;
    snprintf(assignment, sizeof(assignment), "\"ecc.mode_current=%s\"", switches[pending != 0]);
    return sn_order_set(device, assignment);
}
