/* How busy the engines are, now and over the samples that the driver would have kept. */
#define _GNU_SOURCE
#include "access.h"

#define SAMPLING_PERIOD_US 167000 /* as data-centre boards report it */
#define ENCODER_CAPACITY_PERCENT 100

static nvmlReturn_t rates_again(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct sn_read read;
    nvmlUtilization_t copy = {0, 0};
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            const struct sn_device *from = read.device;
            uint64_t now = sn_clock();
            copy.gpu = (unsigned int)sn_gauge_at(&from->utilization_gpu, &from->curve, now);
            copy.memory = (unsigned int)sn_gauge_at(&from->utilization_memory, &from->curve, now);
            code = (nvmlReturn_t)from->utilization_gpu.status;
            if (code == NVML_SUCCESS)
                code = (nvmlReturn_t)from->utilization_memory.status;
        }
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS)
        *utilization = copy;
    return code;
}

/* One look without a loop, as in access.h; the extraordinary goes on above. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct sn_read read;
    const struct sn_device *from;
    nvmlUtilization_t copy;

    if (utilization == NULL)
        return sn_bad_argument(device);
    if (sn_open(&read, device) != NVML_SUCCESS || sn_look(&read) != NVML_SUCCESS)
        return rates_again(device, utilization);
    from = read.device;
    if ((from->utilization_gpu.span | from->utilization_memory.span) != 0 ||
        (from->utilization_gpu.status | from->utilization_memory.status) != 0)
        return rates_again(device, utilization);
    copy.gpu = (unsigned int)from->utilization_gpu.base;
    copy.memory = (unsigned int)from->utilization_memory.base;
    if (!sn_whole(read.image, read.done))
        return rates_again(device, utilization);
    *utilization = copy;
    return NVML_SUCCESS;
}

static nvmlReturn_t engine(nvmlDevice_t device, size_t at, unsigned int *percent, unsigned int *period_us)
{
    unsigned int value;
    nvmlReturn_t code;

    if (percent == NULL || period_us == NULL)
        return sn_bad_argument(device);
    code = sn_get_gauge(device, at, &value);
    if (code == NVML_SUCCESS) {
        *percent = value;
        *period_us = SAMPLING_PERIOD_US;
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                         unsigned int *period_us)
{
    return engine(device, offsetof(struct sn_device, utilization_encoder), percent, period_us);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                         unsigned int *period_us)
{
    return engine(device, offsetof(struct sn_device, utilization_decoder), percent, period_us);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us)
{
    return engine(device, offsetof(struct sn_device, utilization_jpeg), percent, period_us);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us)
{
    return engine(device, offsetof(struct sn_device, utilization_ofa), percent, period_us);
}

static nvmlReturn_t three_words(nvmlDevice_t device, size_t first_at, unsigned int *first, unsigned int *second,
                                unsigned int *third)
{
    struct sn_want wants[] = {
        {SN_WORD, first_at},
        {SN_WORD, first_at + sizeof(struct sn_word)},
        {SN_WORD, first_at + 2 * sizeof(struct sn_word)},
    };
    uint64_t values[3];
    nvmlReturn_t code;

    if (first == NULL || second == NULL || third == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 3, values);
    if (code == NVML_SUCCESS) {
        *first = (unsigned int)values[0];
        *second = (unsigned int)values[1];
        *third = (unsigned int)values[2];
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions, unsigned int *fps,
                                                   unsigned int *latency_us)
{
    return three_words(device, offsetof(struct sn_device, encoder_stats_session_count), sessions, fps, latency_us);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *stats)
{
    if (stats == NULL)
        return sn_bad_argument(device);
    return three_words(device, offsetof(struct sn_device, fbc_stats_session_count), &stats->sessionsCount,
                       &stats->averageFPS, &stats->averageLatency);
}

/* No session is ever open. */
static nvmlReturn_t no_sessions(nvmlDevice_t device, unsigned int *count)
{
    nvmlReturn_t code = count == NULL ? sn_bad_argument(device) : sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *count = 0;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count, void *sessions)
{
    (void)sessions;
    return no_sessions(device, count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count, void *sessions)
{
    (void)sessions;
    return no_sessions(device, count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, unsigned int type, unsigned int *percent)
{
    nvmlReturn_t code = type > 2 || percent == NULL ? sn_bad_argument(device) : sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *percent = ENCODER_CAPACITY_PERCENT;
    return NVML_SUCCESS;
}
