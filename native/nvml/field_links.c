/* The field values that are about NVLinks: one link's, by its number or the scope, or all links' together. */
#define _GNU_SOURCE
#include "field_links.h"

#include "driver.h"
#include "field_value.h"
#include "nvlink.h"

#define ALL_LINKS 0xffffffffu
#define BYTES_PER_KIB 1024
/* What one packet carries: data, header and CRC. */
#define PACKET_BYTES 86
/* nvmlNvlinkVersion_t */
#define VERSION_4 6
#define VERSION_5 7
/* How long a link idles before it saves power: 50 ms, in units of 50 us since 560 and of 100 us before. */
#define DRIVER_WITH_UNITS 560000
#define THRESHOLD_UNITS_50_US 1
#define THRESHOLD 1000
#define THRESHOLD_100_US 500
#define THRESHOLD_MIN 1
#define THRESHOLD_MAX 1023

enum {
    FI_SPEED_COMMON = 90,
    FI_LINK_COUNT = 91,
    FI_THROUGHPUT_DATA_TX = 138,
    FI_THROUGHPUT_DATA_RX = 139,
    FI_THROUGHPUT_RAW_TX = 140,
    FI_THROUGHPUT_RAW_RX = 141,
    FI_REMOTE_LINK = 146,
    FI_SWITCH_LINK_COUNT = 147,
    FI_DL_REPLAY = 161,
    FI_DL_RECOVERY = 162,
    FI_DL_CRC = 163,
    FI_SPEED = 164,
    FI_STATE = 165,
    FI_VERSION = 166,
    FI_POWER_STATE = 167,
    FI_POWER_THRESHOLD = 168,
    FI_POWER_THRESHOLD_MAX = 200,
    FI_XMIT_PACKETS = 201,
    FI_XMIT_BYTES = 202,
    FI_RCV_PACKETS = 203,
    FI_RCV_BYTES = 204,
    FI_MALFORMED_PACKETS = 206,
    FI_RECOVERY_EVENTS = 215,
    FI_EFFECTIVE_ERRORS = 219,
    FI_SYMBOL_BER = 222,
    FI_POWER_THRESHOLD_MIN = 223,
    FI_POWER_THRESHOLD_UNITS = 224,
    FI_POWER_THRESHOLD_SUPPORTED = 225,
    FI_FEC_HISTORY_FIRST = 235,
    FI_FEC_HISTORY_LAST = 250
};

enum what { WHAT_SPEED, WHAT_CRC_FLIT, WHAT_CRC_DATA, WHAT_REPLAY, WHAT_RECOVERY, WHAT_ECC };

/* Ids that name the link themselves, in runs of links. */
static const struct {
    unsigned int first;
    unsigned int count;
    unsigned int link;
    enum what what;
} by_number[] = {
    {32, 6, 0, WHAT_CRC_FLIT}, {39, 6, 0, WHAT_CRC_DATA},  {46, 6, 0, WHAT_REPLAY},   {53, 6, 0, WHAT_RECOVERY},
    {84, 6, 0, WHAT_SPEED},    {96, 6, 6, WHAT_CRC_FLIT},  {102, 6, 6, WHAT_CRC_DATA}, {108, 6, 6, WHAT_REPLAY},
    {114, 6, 6, WHAT_RECOVERY}, {132, 6, 6, WHAT_SPEED},   {148, 12, 0, WHAT_ECC},
};
/* And those that are the sum of a run. */
static const struct {
    unsigned int id;
    enum what what;
} totals[] = {{38, WHAT_CRC_FLIT}, {45, WHAT_CRC_DATA}, {52, WHAT_REPLAY}, {59, WHAT_RECOVERY}, {160, WHAT_ECC}};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t count_of(const struct sn_link *link, enum what what)
{
    switch (what) {
    case WHAT_SPEED:
        return link->active != 0 ? link->speed_mbps : 0;
    case WHAT_CRC_FLIT:
        return link->crc_errors;
    case WHAT_REPLAY:
        return link->replay_errors;
    case WHAT_RECOVERY:
        return link->recovery_errors;
    case WHAT_CRC_DATA:
    case WHAT_ECC:
        return 0;
    }
    return 0;
}

/* Sums and counts over a device's links. */
struct links {
    unsigned int present; /* up or down: nvidia-smi asks for so many */
    unsigned int to_switch;
    unsigned int slowest_mbps;
    uint64_t tx_kib;
    uint64_t rx_kib;
    uint64_t errors;
};

static void add_link(const struct sn_link *link, enum what errors, struct links *links)
{
    links->present++;
    links->errors += count_of(link, errors);
    if (link->active == 0)
        return;
    links->to_switch += link->remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    if (links->slowest_mbps == 0 || link->speed_mbps < links->slowest_mbps)
        links->slowest_mbps = link->speed_mbps;
}

static void add_traffic(const struct sn_read *read, const struct sn_link *link, uint64_t now, struct links *links)
{
    const struct sn_device *device = read->device;

    links->tx_kib += sn_counter_at(&link->tx_kib, &device->curve, &device->old_curve, now);
    links->rx_kib += sn_counter_at(&link->rx_kib, &device->curve, &device->old_curve, now);
}

/* One look at all links, with errors of one kind, and traffic if it is asked for. NOT_SUPPORTED where the device has no
 * NVLink at all. */
static nvmlReturn_t survey(nvmlDevice_t device, enum what errors, bool traffic, struct links *links)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        uint64_t now;
        *links = (struct links){0};
        code = sn_look(&read);
        now = traffic ? sn_counter_time(read.slot, sn_clock()) : 0;
        for (unsigned int i = 0; code == NVML_SUCCESS && i < read.device->link_count && i < SN_MAX_LINKS; i++) {
            const struct sn_link *link = &read.device->link[i];
            if (link->present == 0)
                continue;
            add_link(link, errors, links);
            if (traffic && link->active != 0)
                add_traffic(&read, link, now, links);
        }
    } while (sn_again(&read, &code));
    return code == NVML_SUCCESS && links->present == 0 ? NVML_ERROR_NOT_SUPPORTED : code;
}

static nvmlReturn_t from_all_links(nvmlDevice_t device, unsigned int id, nvmlFieldValue_t *field)
{
    bool traffic = id >= FI_THROUGHPUT_DATA_TX && id <= FI_THROUGHPUT_RAW_RX;
    enum what errors = WHAT_ECC;
    struct links links;
    nvmlReturn_t code;

    for (size_t i = 0; i < COUNT_OF(totals); i++)
        if (totals[i].id == id)
            errors = totals[i].what;
    code = survey(device, errors, traffic, &links);
    if (code != NVML_SUCCESS)
        return code;
    switch (id) {
    case FI_SPEED_COMMON:
        return sn_put_uint(field, links.slowest_mbps);
    case FI_LINK_COUNT:
        return sn_put_uint(field, links.present);
    case FI_SWITCH_LINK_COUNT:
        sn_put_uint(field, links.to_switch);
        return links.to_switch == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    case FI_THROUGHPUT_DATA_TX:
    case FI_THROUGHPUT_RAW_TX:
        return sn_put_ull(field, links.tx_kib);
    case FI_THROUGHPUT_DATA_RX:
    case FI_THROUGHPUT_RAW_RX:
        return sn_put_ull(field, links.rx_kib);
    default:
        return sn_put_ull(field, links.errors);
    }
}

/* Links save power since version 4. */
static nvmlReturn_t power_saving(const struct sn_link *link, unsigned int id, nvmlFieldValue_t *field)
{
    if (link->version < VERSION_4)
        return NVML_ERROR_NOT_SUPPORTED;
    switch (id) {
    case FI_POWER_STATE:
        return sn_put_uint(field, 0); /* high speed */
    case FI_POWER_THRESHOLD:
        return sn_put_uint(field, sn_driver() < DRIVER_WITH_UNITS ? THRESHOLD_100_US : THRESHOLD);
    case FI_POWER_THRESHOLD_MAX:
        return sn_put_uint(field, THRESHOLD_MAX);
    case FI_POWER_THRESHOLD_MIN:
        return sn_put_uint(field, THRESHOLD_MIN);
    case FI_POWER_THRESHOLD_UNITS:
        return sn_put_uint(field, THRESHOLD_UNITS_50_US);
    default:
        return sn_put_uint(field, 1); /* supported */
    }
}

/* The counters that version 5 brought. Beside the traffic and the replays all of them stand at 0. */
static nvmlReturn_t packet_counters(const struct sn_link *link, unsigned int id, uint64_t tx_kib, uint64_t rx_kib,
                                    nvmlFieldValue_t *field)
{
    if (link->version < VERSION_5)
        return NVML_ERROR_NOT_SUPPORTED;
    switch (id) {
    case FI_XMIT_PACKETS:
        return sn_put_ull(field, tx_kib * BYTES_PER_KIB / PACKET_BYTES);
    case FI_XMIT_BYTES:
        return sn_put_ull(field, tx_kib * BYTES_PER_KIB / PACKET_BYTES * PACKET_BYTES);
    case FI_RCV_PACKETS:
        return sn_put_ull(field, rx_kib * BYTES_PER_KIB / PACKET_BYTES);
    case FI_RCV_BYTES:
        return sn_put_ull(field, rx_kib * BYTES_PER_KIB / PACKET_BYTES * PACKET_BYTES);
    case FI_RECOVERY_EVENTS:
        return sn_put_ull(field, link->recovery_errors);
    default:
        return sn_put_ull(field, 0);
    }
}

static bool is_packet_counter(unsigned int id)
{
    return (id >= FI_XMIT_PACKETS && id <= FI_RCV_BYTES) || (id >= FI_MALFORMED_PACKETS && id <= FI_RECOVERY_EVENTS) ||
           (id >= FI_EFFECTIVE_ERRORS && id <= FI_SYMBOL_BER) ||
           (id >= FI_FEC_HISTORY_FIRST && id <= FI_FEC_HISTORY_LAST);
}

/* Ids that a link answers; the scope says which. */
static bool is_of_one_link(unsigned int id)
{
    return id == FI_REMOTE_LINK || (id >= FI_DL_REPLAY && id <= FI_POWER_THRESHOLD) || id == FI_POWER_THRESHOLD_MAX ||
           (id >= FI_POWER_THRESHOLD_MIN && id <= FI_POWER_THRESHOLD_SUPPORTED) || is_packet_counter(id);
}

static nvmlReturn_t from_link(nvmlDevice_t device, unsigned int index, unsigned int id, nvmlFieldValue_t *field)
{
    struct sn_link link;
    uint64_t tx_kib = 0;
    uint64_t rx_kib = 0;
    nvmlReturn_t code = sn_get_link(device, index, &link, &tx_kib, &rx_kib);

    if (code != NVML_SUCCESS)
        return code;
    if (id == FI_STATE)
        return sn_put_uint(field, link.active != 0);
    if (id == FI_VERSION)
        return sn_put_uint(field, link.version);
    if (link.active == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (is_packet_counter(id))
        return packet_counters(&link, id, tx_kib, rx_kib, field);
    switch (id) {
    case FI_THROUGHPUT_DATA_TX:
    case FI_THROUGHPUT_RAW_TX:
        return sn_put_ull(field, tx_kib);
    case FI_THROUGHPUT_DATA_RX:
    case FI_THROUGHPUT_RAW_RX:
        return sn_put_ull(field, rx_kib);
    case FI_REMOTE_LINK:
        return sn_put_uint(field, link.remote_link);
    case FI_DL_REPLAY:
        return sn_put_ull(field, link.replay_errors);
    case FI_DL_RECOVERY:
        return sn_put_ull(field, link.recovery_errors);
    case FI_DL_CRC:
        return sn_put_ull(field, link.crc_errors);
    case FI_SPEED:
        return sn_put_uint(field, link.speed_mbps);
    case FI_POWER_STATE:
    case FI_POWER_THRESHOLD:
    case FI_POWER_THRESHOLD_MAX:
    case FI_POWER_THRESHOLD_MIN:
    case FI_POWER_THRESHOLD_UNITS:
    case FI_POWER_THRESHOLD_SUPPORTED:
        return power_saving(&link, id, field);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t sn_get_link_field(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field)
{
    for (size_t i = 0; i < COUNT_OF(by_number); i++) {
        struct sn_link link;
        nvmlReturn_t code;
        if (id - by_number[i].first >= by_number[i].count)
            continue;
        code = sn_get_link(device, by_number[i].link + id - by_number[i].first, &link, NULL, NULL);
        if (code != NVML_SUCCESS)
            return code;
        if (by_number[i].what == WHAT_SPEED)
            return link.active != 0 ? sn_put_uint(field, link.speed_mbps) : NVML_ERROR_NOT_SUPPORTED;
        return sn_put_ull(field, count_of(&link, by_number[i].what));
    }
    switch (id) {
    case FI_SPEED_COMMON:
    case FI_LINK_COUNT:
    case FI_SWITCH_LINK_COUNT:
        return from_all_links(device, id, field);
    case FI_THROUGHPUT_DATA_TX:
    case FI_THROUGHPUT_DATA_RX:
    case FI_THROUGHPUT_RAW_TX:
    case FI_THROUGHPUT_RAW_RX:
        return scope == ALL_LINKS ? from_all_links(device, id, field) : from_link(device, scope, id, field);
    default:
        break;
    }
    for (size_t i = 0; i < COUNT_OF(totals); i++)
        if (totals[i].id == id)
            return from_all_links(device, id, field);
    return is_of_one_link(id) ? from_link(device, scope, id, field) : NVML_ERROR_NOT_SUPPORTED;
}
