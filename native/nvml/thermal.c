/* Temperatures, their thresholds, and the margin that replaces both on newer boards; fans. */
#define _GNU_SOURCE
#include "thermal.h"

#include "access.h"

#define SENSOR_GPU 0
#define CONTROLLER_GPU_INTERNAL 1
#define TARGET_GPU 1
#define TARGET_ALL 15

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *celsius)
{
    if (sensor != SENSOR_GPU)
        return sn_bad_argument(device);
    return sn_get_gauge(device, offsetof(struct sn_device, thermal_temperature_gpu_c), celsius);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    unsigned int celsius;
    nvmlReturn_t code;

    if (temperature == NULL)
        return sn_bad_argument(device);
    code = nvmlDeviceGetTemperature(device, SENSOR_GPU, &celsius);
    if (code != NVML_SUCCESS)
        return code;
    if (temperature->version != SN_TAG(nvmlTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != SENSOR_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    temperature->temperature = (int)celsius;
    return NVML_SUCCESS;
}

nvmlReturn_t sn_get_margin(nvmlDevice_t device, int *celsius)
{
    static const struct sn_want wants[] = {
        {SN_WORD, offsetof(struct sn_device, thermal_tlimit_reference_c)},
        {SN_GAUGE, offsetof(struct sn_device, thermal_temperature_gpu_c)},
    };
    uint64_t values[2];
    nvmlReturn_t code = sn_get_cells(device, wants, 2, values);

    if (code == NVML_SUCCESS)
        *celsius = (int)((unsigned int)values[0] - (unsigned int)values[1]);
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin)
{
    int celsius;
    nvmlReturn_t code;

    if (margin == NULL)
        return sn_bad_argument(device);
    code = sn_get_margin(device, &celsius);
    if (code == NVML_SUCCESS && margin->version != SN_TAG(nvmlMarginTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        margin->marginTemperature = celsius;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int threshold,
                                                           unsigned int *celsius)
{
    switch (threshold) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
        return sn_get_word(device, offsetof(struct sn_device, thermal_shutdown_threshold_c), celsius);
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
        return sn_get_word(device, offsetof(struct sn_device, thermal_slowdown_threshold_c), celsius);
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
        return sn_get_word(device, offsetof(struct sn_device, thermal_memory_max_c), celsius);
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
        return sn_get_word(device, offsetof(struct sn_device, thermal_max_operating_c), celsius);
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR:
        return sn_get_word(device, offsetof(struct sn_device, thermal_target_temperature_c), celsius);
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN:
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX:
    case NVML_TEMPERATURE_THRESHOLD_GPS_CURR:
        return celsius == NULL ? sn_bad_argument(device) : sn_refuse_device(device);
    default:
        return sn_bad_argument(device);
    }
}

/* One sensor, the GPU's own. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned int index,
                                                      nvmlGpuThermalSettings_t *settings)
{
    unsigned int celsius;
    unsigned int most;
    nvmlReturn_t code;

    if (settings == NULL || (index != 0 && index != TARGET_ALL))
        return sn_bad_argument(device);
    code = nvmlDeviceGetTemperature(device, SENSOR_GPU, &celsius);
    if (code != NVML_SUCCESS)
        return code;
    if (nvmlDeviceGetTemperatureThreshold(device, NVML_TEMPERATURE_THRESHOLD_GPU_MAX, &most) != NVML_SUCCESS)
        most = 0;
    memset(settings, 0, sizeof(*settings));
    settings->count = 1;
    settings->sensor[0] = (sn_thermal_sensor){
        .controller = CONTROLLER_GPU_INTERNAL,
        .defaultMaxTemp = (int)most,
        .currentTemp = (int)celsius,
        .target = TARGET_GPU,
    };
    return NVML_SUCCESS;
}

/* All fans of a board turn alike. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent)
{
    unsigned int fans;
    nvmlReturn_t code = sn_get_word(device, offsetof(struct sn_device, fan_count), &fans);

    if (code != NVML_SUCCESS)
        return code;
    if (fans != 0 && fan >= fans)
        return NVML_ERROR_INVALID_ARGUMENT;
    return sn_get_gauge(device, offsetof(struct sn_device, fan_speed_percent), percent);
}
