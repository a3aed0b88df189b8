/* nvmlDeviceGetSamples: what the driver would have recorded. A gauge is a function of time, so its past can be
 * computed. */
#define _GNU_SOURCE
#include "access.h"

#define SAMPLES 120
#define PERIOD_NS UINT64_C(100000000)
#define NS_PER_US 1000

/* By nvmlSamplingType_t; 0: boards have no such sensor. */
static const size_t sensors[] = {
    offsetof(struct sn_device, power_current_draw_mw), offsetof(struct sn_device, utilization_gpu),
    offsetof(struct sn_device, utilization_memory),    offsetof(struct sn_device, utilization_encoder),
    offsetof(struct sn_device, utilization_decoder),   offsetof(struct sn_device, clocks_sm_current),
    offsetof(struct sn_device, clocks_memory_current), offsetof(struct sn_device, power_module_current_draw_mw),
    offsetof(struct sn_device, utilization_jpeg),      offsetof(struct sn_device, utilization_ofa),
};

/* Copies the gauge and its curve in one look. */
static nvmlReturn_t copy_sensor(nvmlDevice_t device, size_t at, struct sn_gauge *gauge, struct sn_curve *curve)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            memcpy(gauge, sn_cell(&read, at), sizeof(*gauge));
            memcpy(curve, &read.device->curve, sizeof(*curve));
            code = (nvmlReturn_t)gauge->status;
        }
    } while (sn_again(&read, &code));
    return code;
}

/* Samples lie at multiples of the period, so that two calls agree on those they both give; oldest first. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type, unsigned long long last_seen_us,
                                              nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    struct sn_gauge gauge;
    struct sn_curve curve;
    uint64_t now;
    unsigned long long wall_us;
    unsigned int number = 0;
    nvmlReturn_t code;

    if (type >= sizeof(sensors) / sizeof(sensors[0]) || value_type == NULL || count == NULL)
        return sn_bad_argument(device);
    code = copy_sensor(device, sensors[type], &gauge, &curve);
    if (code != NVML_SUCCESS)
        return code;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples == NULL) {
        *count = SAMPLES;
        return NVML_SUCCESS;
    }
    wall_us = sn_wall_clock_us();
    now = sn_clock();
    for (unsigned int back = *count < SAMPLES ? *count : SAMPLES; back-- > 0;) {
        uint64_t age = now % PERIOD_NS + back * PERIOD_NS;
        unsigned long long stamp = wall_us - age / NS_PER_US;
        if (age > now || stamp <= last_seen_us)
            continue;
        samples[number].timeStamp = stamp;
        samples[number].sampleValue.ullVal = 0;
        samples[number++].sampleValue.uiVal = (unsigned int)sn_gauge_at(&gauge, &curve, now - age);
    }
    *count = number;
    return number == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
