/* Power limits, and why the clocks are not higher. */
#define _GNU_SOURCE
#include "access.h"

#define NS_PER_US 1000

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min_mw,
                                                                      unsigned int *max_mw)
{
    return sn_get_pair(device, offsetof(struct sn_device, power_min_limit_mw),
                       offsetof(struct sn_device, power_max_limit_mw), min_mw, max_mw);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, unsigned int *source)
{
    nvmlReturn_t code = source == NULL ? sn_bad_argument(device) : sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *source = 0; /* NVML_POWER_SOURCE_AC */
    return NVML_SUCCESS;
}

/* Time below the requested clocks by cause. Causes that no board accounts for have no time at all, not an error. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                                      nvmlViolationTime_t *time)
{
    unsigned long long us = 0;
    size_t at;
    nvmlReturn_t code;

    switch (policy) {
    case NVML_PERF_POLICY_POWER:
        at = offsetof(struct sn_device, clocks_throttle_reasons_counters_sw_power_cap_us);
        break;
    case NVML_PERF_POLICY_THERMAL:
        at = offsetof(struct sn_device, clocks_throttle_reasons_counters_sw_thermal_slowdown_us);
        break;
    case NVML_PERF_POLICY_SYNC_BOOST:
        at = offsetof(struct sn_device, clocks_throttle_reasons_counters_sync_boost_us);
        break;
    case NVML_PERF_POLICY_BOARD_LIMIT:
    case NVML_PERF_POLICY_LOW_UTILIZATION:
    case NVML_PERF_POLICY_RELIABILITY:
    case NVML_PERF_POLICY_TOTAL_BASE_CLOCKS:
        at = 0;
        break;
    case NVML_PERF_POLICY_TOTAL_APP_CLOCKS:
        return time == NULL ? sn_bad_argument(device) : sn_refuse_device(device);
    default:
        return sn_bad_argument(device);
    }
    if (time == NULL)
        return sn_bad_argument(device);
    code = at != 0 ? sn_get_counter(device, at, &us) : sn_refuse_device(device);
    if (at == 0 && code == NVML_ERROR_NOT_SUPPORTED)
        code = NVML_SUCCESS;
    if (code == NVML_SUCCESS) {
        time->referenceTime = sn_wall_clock_us();
        time->violationTime = us * NS_PER_US;
    }
    return code;
}
