/* Columns about what a GPU is doing: engines, clocks, heat, power. */
#define _GNU_SOURCE
#include <stdio.h>

#include "sources.h"

#define FIELD_MEMORY_TEMPERATURE 82

typedef nvmlReturn_t engine_getter(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
typedef nvmlReturn_t clock_getter(nvmlDevice_t device, unsigned int domain, unsigned int *mhz);
typedef nvmlReturn_t reasons_getter(nvmlDevice_t device, unsigned long long *mask);

engine_getter nvmlDeviceGetEncoderUtilization;
engine_getter nvmlDeviceGetDecoderUtilization;
engine_getter nvmlDeviceGetJpgUtilization;
engine_getter nvmlDeviceGetOfaUtilization;
clock_getter nvmlDeviceGetClockInfo;
clock_getter nvmlDeviceGetApplicationsClock;
clock_getter nvmlDeviceGetDefaultApplicationsClock;
clock_getter nvmlDeviceGetMaxClockInfo;
reasons_getter nvmlDeviceGetSupportedClocksThrottleReasons;
reasons_getter nvmlDeviceGetCurrentClocksThrottleReasons;
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions, unsigned int *fps,
                                       unsigned int *latency_us);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min_mw,
                                                          unsigned int *max_mw);

nvmlReturn_t smi_utilization(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    static engine_getter *const getters[] = {
        [SMI_ENGINE_ENCODER] = nvmlDeviceGetEncoderUtilization,
        [SMI_ENGINE_DECODER] = nvmlDeviceGetDecoderUtilization,
        [SMI_ENGINE_JPEG] = nvmlDeviceGetJpgUtilization,
        [SMI_ENGINE_OFA] = nvmlDeviceGetOfaUtilization,
    };
    nvmlUtilization_t rates = {0};
    unsigned int percent = 0;
    unsigned int period;
    nvmlReturn_t code;

    if (which > SMI_ENGINE_MEMORY) {
        code = getters[which](device, &percent, &period);
        *out = percent;
        return code;
    }
    code = nvmlDeviceGetUtilizationRates(device, &rates);
    *out = which == SMI_ENGINE_GPU ? rates.gpu : rates.memory;
    return code;
}

nvmlReturn_t smi_encoder(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int parts[3] = {0};
    nvmlReturn_t code = nvmlDeviceGetEncoderStats(device, &parts[SMI_SESSIONS], &parts[SMI_FPS], &parts[SMI_LATENCY]);

    *out = parts[which];
    return code;
}

nvmlReturn_t smi_clock(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    static clock_getter *const getters[] = {
        [SMI_CURRENT / SMI_APPLICATION] = nvmlDeviceGetClockInfo,
        [SMI_APPLICATION / SMI_APPLICATION] = nvmlDeviceGetApplicationsClock,
        [SMI_DEFAULT / SMI_APPLICATION] = nvmlDeviceGetDefaultApplicationsClock,
        [SMI_MAX / SMI_APPLICATION] = nvmlDeviceGetMaxClockInfo,
    };
    unsigned int mhz = 0;
    nvmlReturn_t code = getters[which / SMI_APPLICATION](device, which % SMI_APPLICATION, &mhz);

    *out = mhz;
    return code;
}

nvmlReturn_t smi_event_reasons(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlReturn_t code = nvmlDeviceGetSupportedClocksThrottleReasons(device, out);

    if (code != NVML_SUCCESS || which == SMI_REASONS_SUPPORTED)
        return code;
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, out);
}

/* `which` is the reason's bit. Where the GPU does not say which reasons it knows, some count as unknown to it. */
nvmlReturn_t smi_event_reason(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    const unsigned int unknown = 0x01 | 0x02 | 0x04 | 0x80;
    unsigned long long mask;
    nvmlReturn_t code = nvmlDeviceGetSupportedClocksThrottleReasons(row->device, &mask);

    if (code != NVML_SUCCESS)
        return (which & unknown) != 0 ? NVML_ERROR_NOT_SUPPORTED : code;
    if ((mask & which) == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    code = nvmlDeviceGetCurrentClocksThrottleReasons(row->device, &mask);
    if (code == NVML_SUCCESS)
        snprintf(out, SMI_CELL_BYTES, "%s", (mask & which) != 0 ? "Active" : "Not Active");
    return code;
}

nvmlReturn_t smi_temperature(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int celsius = 0;
    nvmlReturn_t code = nvmlDeviceGetTemperature(device, (int)which, &celsius);

    *out = celsius;
    return code;
}

nvmlReturn_t smi_field_number(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlFieldValue_t field = {.fieldId = which};
    nvmlReturn_t code = nvmlDeviceGetFieldValues(device, 1, &field);

    if (code != NVML_SUCCESS)
        return code;
    *out = field.value.uiVal;
    return field.nvmlReturn;
}

/* Whatever the reason, a temperature that is not told is N/A. */
nvmlReturn_t smi_memory_temperature(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    unsigned long long celsius;

    (void)which;
    if (smi_field_number(row->device, FIELD_MEMORY_TEMPERATURE, &celsius) == NVML_SUCCESS)
        smi_decimal(celsius, out);
    else
        snprintf(out, SMI_CELL_BYTES, "N/A");
    return NVML_SUCCESS;
}

nvmlReturn_t smi_power_limit(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int limits[2] = {0};
    nvmlReturn_t code =
        nvmlDeviceGetPowerManagementLimitConstraints(device, &limits[SMI_MIN_LIMIT], &limits[SMI_MAX_LIMIT]);

    *out = limits[which];
    return code;
}
