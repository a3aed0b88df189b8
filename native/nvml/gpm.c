/* GPU performance monitoring: two samples of a device, and what went on between them.
 *
 * Samples are static, like handles: a stale or invented pointer is recognised, never followed. A gauge is a line over
 * the load curve, so its mean between two times is the line at the curve's mean; what the NVLinks carried is the
 * difference of their counters. Boards have this since Hopper. */
#define _GNU_SOURCE
#include "gpm.h"

#include "access.h"

#define MAX_SAMPLES 512
#define VERSION 1 /* of both structs, never a tag */
#define MOST_METRICS 477
#define ARCHITECTURE_HOPPER 9
#define NS_PER_S 1e9
#define KIB_PER_MIB 1024.0
#define AT(member) offsetof(struct sn_device, member)

struct nvmlGpmSample_st {
    uint32_t taken;
    uint32_t device;
    uint32_t epoch;
    uint64_t time; /* of sn_clock */
    uint64_t sent_kib[SN_MAX_LINKS];
    uint64_t received_kib[SN_MAX_LINKS];
};

static struct nvmlGpmSample_st samples[MAX_SAMPLES];
/* Which of them callers have; apart from them, for whoever looks at all would bring all their memory into being. */
static uint32_t used[MAX_SAMPLES];

/* Metrics that are a share of a gauge, ids `first` to `last`. */
static const struct metric {
    unsigned int first;
    unsigned int last;
    size_t at;
    double share;
    const char *short_name;
    const char *long_name;
} gauges[] = {
    {1, 1, AT(utilization_gpu), 1.0, "gract", "Graphics engine activity"},
    {2, 2, AT(utilization_gpu), 1.0, "smutil", "SM activity"},
    {3, 3, AT(utilization_gpu), 0.75, "smocc", "SM occupancy"},
    {4, 4, AT(utilization_gpu), 0.10, "integ", "Integer activity"},
    {5, 5, AT(utilization_gpu), 0.50, "anyts", "Tensor activity"},
    {6, 6, AT(utilization_gpu), 0.02, "dfmat", "DFMA tensor activity"},
    {7, 7, AT(utilization_gpu), 0.40, "hmmat", "HMMA tensor activity"},
    {8, 8, AT(utilization_gpu), 0.05, "dmmat", "DMMA tensor activity"},
    {9, 9, AT(utilization_gpu), 0.05, "immat", "IMMA tensor activity"},
    {10, 10, AT(utilization_memory), 1.0, "dram", "DRAM bandwidth utilization"},
    {11, 11, AT(utilization_gpu), 0.05, "fp64", "FP64 activity"},
    {12, 12, AT(utilization_gpu), 0.25, "fp32", "FP32 activity"},
    {13, 13, AT(utilization_gpu), 0.35, "fp16", "FP16 activity"},
    {30, 36, AT(utilization_decoder), 1.0, "nvdec", "NVDEC utilization"},
    {40, 46, AT(utilization_jpeg), 1.0, "nvjpg", "NVJPG utilization"},
    {50, 50, AT(utilization_ofa), 1.0, "nvofa", "NVOFA utilization"},
    {20, 20, AT(pcie_tx_throughput_kbps), 1.0 / KIB_PER_MIB, "pcitx", "PCIe bytes sent"},
    {21, 21, AT(pcie_rx_throughput_kbps), 1.0 / KIB_PER_MIB, "pcirx", "PCIe bytes received"},
};
#define FIRST_PER_SECOND 20
#define LAST_PER_SECOND 21

enum { METRIC_ALL_RECEIVED = 60, METRIC_ALL_SENT = 61, METRIC_LINK_FIRST = 62, METRIC_LINK_LAST = 97 };

static bool is_sample(nvmlGpmSample_t sample)
{
    uintptr_t at = (uintptr_t)sample - (uintptr_t)samples;

    return at < sizeof(samples) && at % sizeof(samples[0]) == 0 &&
           __atomic_load_n(&used[at / sizeof(samples[0])], __ATOMIC_ACQUIRE) != 0;
}

void sn_free_gpm_samples(void)
{
    for (unsigned int i = 0; i < MAX_SAMPLES; i++)
        __atomic_store_n(&used[i], 0, __ATOMIC_RELEASE);
}

/* NOT_SUPPORTED before Hopper. */
static nvmlReturn_t can_be_monitored(nvmlDevice_t device)
{
    unsigned int architecture;
    nvmlReturn_t code = sn_get_word(device, AT(architecture), &architecture);

    return code == NVML_SUCCESS && (architecture < ARCHITECTURE_HOPPER || architecture == SN_NO_INSTANCE)
               ? NVML_ERROR_NOT_SUPPORTED
               : code;
}

NVML_EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    nvmlReturn_t code = support == NULL ? sn_bad_argument(device) : can_be_monitored(device);

    if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (support->version != VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = code == NVML_SUCCESS;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int *state)
{
    nvmlReturn_t code = state == NULL ? sn_bad_argument(device) : can_be_monitored(device);

    if (code == NVML_SUCCESS)
        *state = 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t device, unsigned int state)
{
    nvmlReturn_t code = can_be_monitored(device);

    (void)state;
    return code == NVML_SUCCESS ? NVML_ERROR_NO_PERMISSION : code;
}

NVML_EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (sample == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < MAX_SAMPLES; i++) {
        uint32_t free = 0;
        if (!__atomic_compare_exchange_n(&used[i], &free, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        samples[i].taken = 0;
        *sample = &samples[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_MEMORY;
}

NVML_EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_sample(sample))
        return NVML_ERROR_INVALID_ARGUMENT;
    __atomic_store_n(&used[sample - samples], 0, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct nvmlGpmSample_st taken = {.taken = 1};
    struct sn_read read;
    nvmlReturn_t code = can_be_monitored(device);

    if (code == NVML_SUCCESS)
        code = sn_open(&read, device);
    if (code != NVML_SUCCESS)
        return code;
    if (!is_sample(sample))
        return NVML_ERROR_INVALID_ARGUMENT;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            taken.time = sn_counter_time(read.slot, sn_clock());
            for (unsigned int i = 0; i < SN_MAX_LINKS; i++) {
                const struct sn_link *link = &read.device->link[i];
                if (i >= read.device->link_count || link->present == 0)
                    continue;
                taken.sent_kib[i] = sn_counter_now(&read, &link->tx_kib);
                taken.received_kib[i] = sn_counter_now(&read, &link->rx_kib);
            }
        }
    } while (sn_again(&read, &code));
    if (code != NVML_SUCCESS)
        return code;
    taken.device = read.index;
    taken.epoch = read.epoch;
    *sample = taken;
    return NVML_SUCCESS;
}

/* The mean of the load between two times, 0 to 1. */
static double mean_load(const struct sn_curve *curve, uint64_t from, uint64_t to)
{
    /* the integral counts 2^-32 segments, of which a period has SN_CURVE_SEGMENTS */
    double full = (double)(to - from) * (double)curve->inverse_period / 0x1p64 * SN_CURVE_SEGMENTS * 0x1p32;

    if (full <= 0)
        return (double)sn_load(curve, to) / SN_FULL_LOAD;
    return (double)(sn_integral(curve, to) - sn_integral(curve, from)) / full;
}

static nvmlReturn_t mean_gauge(nvmlDevice_t device, size_t at, uint64_t from, uint64_t to, double *value)
{
    struct sn_read read;
    struct sn_gauge gauge = {0};
    double load = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            memcpy(&gauge, sn_cell(&read, at), sizeof(gauge));
            code = (nvmlReturn_t)gauge.status;
            load = gauge.span == 0 ? 0 : mean_load(&read.device->curve, from, to);
        }
    } while (sn_again(&read, &code));
    *value = (double)gauge.base + (double)gauge.span * load;
    return code;
}

/* MiB/s of one link, or of all. */
static nvmlReturn_t traffic(nvmlGpmSample_t first, nvmlGpmSample_t second, nvmlGpmMetric_t *metric)
{
    unsigned int id = metric->metricId;
    bool sent = id % 2 != 0;
    unsigned int link = (id - METRIC_LINK_FIRST) / 2;
    double seconds = (double)(second->time - first->time) / NS_PER_S;
    uint64_t kib = 0;

    for (unsigned int i = 0; i < SN_MAX_LINKS; i++)
        if (id < METRIC_LINK_FIRST || i == link)
            kib += sent ? second->sent_kib[i] - first->sent_kib[i] : second->received_kib[i] - first->received_kib[i];
    metric->value = seconds > 0 ? (double)kib / KIB_PER_MIB / seconds : 0;
    metric->metricInfo.shortName = sent ? "nvltx" : "nvlrx";
    metric->metricInfo.longName = sent ? "NVLink bytes sent" : "NVLink bytes received";
    metric->metricInfo.unit = "MiB/s";
    return NVML_SUCCESS;
}

static nvmlReturn_t measure(nvmlDevice_t device, nvmlGpmSample_t first, nvmlGpmSample_t second, nvmlGpmMetric_t *metric)
{
    unsigned int id = metric->metricId;

    if (id >= METRIC_ALL_RECEIVED && id <= METRIC_LINK_LAST)
        return traffic(first, second, metric);
    for (unsigned int i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
        const struct metric *row = &gauges[i];
        double value;
        nvmlReturn_t code;
        if (id < row->first || id > row->last)
            continue;
        code = mean_gauge(device, row->at, first->time, second->time, &value);
        if (code != NVML_SUCCESS)
            return code;
        metric->value = value * row->share;
        metric->metricInfo.shortName = row->short_name;
        metric->metricInfo.longName = row->long_name;
        metric->metricInfo.unit = id >= FIRST_PER_SECOND && id <= LAST_PER_SECOND ? "MiB/s" : "%";
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

/* Not a metric beyond the caller's number is touched: the array has grown with every release. */
NVML_EXPORT nvmlReturn_t nvmlGpmMetricsGet(sn_gpm_metrics_get *get)
{
    nvmlGpmSample_t first;
    nvmlGpmSample_t second;
    nvmlDevice_t device;
    nvmlReturn_t code;

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (get == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    first = get->sample1;
    second = get->sample2;
    if (get->numMetrics == 0 || get->numMetrics > MOST_METRICS || !is_sample(first) || !is_sample(second) ||
        first->taken == 0 || second->taken == 0 || first->device != second->device || first->epoch != second->epoch)
        return NVML_ERROR_INVALID_ARGUMENT;
    device = &sn_handles[first->device % SN_MAX_DEVICES][first->epoch % SN_EPOCHS];
    code = can_be_monitored(device);
    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &get->metrics[i];
        metric->value = 0;
        metric->nvmlReturn = first->time <= second->time ? measure(device, first, second, metric)
                                                         : measure(device, second, first, metric);
    }
    return NVML_SUCCESS;
}
