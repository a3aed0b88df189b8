/* nvmlDeviceGetFieldValues: one table row for every id that a cell answers, and code for those that need a link's. */
#define _GNU_SOURCE
#include "access.h"
#include "nvlink.h"

struct sn_field {
    unsigned int id;
    int scope; /* -1: any */
    enum sn_kind kind;
    nvmlValueType_t type;
    size_t at;
};

#include "field_table.h"

#define FIELD_COUNT (sizeof(sn_fields) / sizeof(sn_fields[0]))
#define ALL_LINKS 0xffffffffu
#define NS_PER_US 1000

enum {
    FI_RETIRED_SBE = 29,
    FI_RETIRED_DBE = 30,
    FI_RETIRED_PENDING = 31,
    FI_PERF_POLICY_POWER = 74,
    FI_PERF_POLICY_THERMAL = 75,
    FI_PERF_POLICY_SYNC_BOOST = 76,
    FI_NVLINK_SPEED_L0 = 84,
    FI_NVLINK_SPEED_L5 = 89,
    FI_NVLINK_SPEED_COMMON = 90,
    FI_NVLINK_LINK_COUNT = 91,
    FI_NVLINK_SPEED_L6 = 132,
    FI_NVLINK_SPEED_L11 = 137,
    FI_NVLINK_THROUGHPUT_DATA_TX = 138,
    FI_NVLINK_THROUGHPUT_DATA_RX = 139,
    FI_NVLINK_THROUGHPUT_RAW_TX = 140,
    FI_NVLINK_THROUGHPUT_RAW_RX = 141,
    FI_NVLINK_REMOTE_LINK = 146,
    FI_NVSWITCH_LINK_COUNT = 147,
    FI_NVLINK_DL_REPLAY = 161,
    FI_NVLINK_DL_RECOVERY = 162,
    FI_NVLINK_DL_CRC = 163,
    FI_NVLINK_SPEED = 164,
    FI_NVLINK_STATE = 165,
    FI_NVLINK_VERSION = 166,
    FI_RESET_REQUIRED = 226,
    FI_DRAIN_AND_RESET = 227
};

static void put_uint(nvmlFieldValue_t *field, unsigned int value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
}

static void put_ull(nvmlFieldValue_t *field, unsigned long long value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = value;
}

static const struct sn_field *row_of(unsigned int id, unsigned int scope)
{
    for (size_t i = 0; i < FIELD_COUNT && sn_fields[i].id <= id; i++)
        if (sn_fields[i].id == id && (sn_fields[i].scope < 0 || (unsigned int)sn_fields[i].scope == scope))
            return &sn_fields[i];
    return NULL;
}

static nvmlReturn_t from_cell(nvmlDevice_t device, const struct sn_field *row, nvmlFieldValue_t *field)
{
    struct sn_want want = {row->kind, row->at};
    uint64_t value;
    nvmlReturn_t code = sn_get_cells(device, &want, 1, &value);

    if (code != NVML_SUCCESS)
        return code;
    field->valueType = row->type;
    if (row->type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
        field->value.ullVal = value;
    else
        field->value.uiVal = (unsigned int)value;
    return NVML_SUCCESS;
}

/* Sums and counts over a device's links. */
struct links {
    unsigned int present;
    unsigned int active;
    unsigned int to_switch;
    unsigned int slowest_mbps;
    uint64_t tx_kib;
    uint64_t rx_kib;
};

/* NOT_SUPPORTED where the device has no NVLink at all. */
static nvmlReturn_t survey(nvmlDevice_t device, struct links *links)
{
    *links = (struct links){0};
    for (unsigned int index = 0; index < SN_MAX_LINKS; index++) {
        struct sn_link link;
        uint64_t tx_kib;
        uint64_t rx_kib;
        nvmlReturn_t code = sn_get_link(device, index, &link, &tx_kib, &rx_kib);
        if (code == NVML_ERROR_NOT_SUPPORTED)
            continue;
        if (code != NVML_SUCCESS)
            return code;
        links->present++;
        if (link.active == 0)
            continue;
        links->active++;
        links->to_switch += link.remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
        if (links->slowest_mbps == 0 || link.speed_mbps < links->slowest_mbps)
            links->slowest_mbps = link.speed_mbps;
        links->tx_kib += tx_kib;
        links->rx_kib += rx_kib;
    }
    return links->present == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t from_all_links(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    struct links links;
    nvmlReturn_t code = survey(device, &links);

    if (code != NVML_SUCCESS)
        return code;
    switch (field->fieldId) {
    case FI_NVLINK_SPEED_COMMON:
        put_uint(field, links.slowest_mbps);
        return NVML_SUCCESS;
    case FI_NVLINK_LINK_COUNT:
        put_uint(field, links.active);
        return NVML_SUCCESS;
    case FI_NVSWITCH_LINK_COUNT:
        put_uint(field, links.to_switch);
        return links.to_switch == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    case FI_NVLINK_THROUGHPUT_DATA_TX:
    case FI_NVLINK_THROUGHPUT_RAW_TX:
        put_ull(field, links.tx_kib);
        return NVML_SUCCESS;
    default:
        put_ull(field, links.rx_kib);
        return NVML_SUCCESS;
    }
}

static nvmlReturn_t from_link(nvmlDevice_t device, unsigned int index, nvmlFieldValue_t *field)
{
    struct sn_link link;
    uint64_t tx_kib = 0;
    uint64_t rx_kib = 0;
    nvmlReturn_t code = sn_get_link(device, index, &link, &tx_kib, &rx_kib);

    if (code != NVML_SUCCESS)
        return code;
    if (field->fieldId == FI_NVLINK_STATE) {
        put_uint(field, link.active != 0);
        return NVML_SUCCESS;
    }
    if (field->fieldId == FI_NVLINK_VERSION) {
        put_uint(field, link.version);
        return NVML_SUCCESS;
    }
    if (link.active == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    switch (field->fieldId) {
    case FI_NVLINK_THROUGHPUT_DATA_TX:
    case FI_NVLINK_THROUGHPUT_RAW_TX:
        put_ull(field, tx_kib);
        return NVML_SUCCESS;
    case FI_NVLINK_THROUGHPUT_DATA_RX:
    case FI_NVLINK_THROUGHPUT_RAW_RX:
        put_ull(field, rx_kib);
        return NVML_SUCCESS;
    case FI_NVLINK_REMOTE_LINK:
        put_uint(field, link.remote_link);
        return NVML_SUCCESS;
    case FI_NVLINK_DL_REPLAY:
        put_ull(field, link.replay_errors);
        return NVML_SUCCESS;
    case FI_NVLINK_DL_RECOVERY:
        put_ull(field, link.recovery_errors);
        return NVML_SUCCESS;
    case FI_NVLINK_DL_CRC:
        put_ull(field, link.crc_errors);
        return NVML_SUCCESS;
    default:
        put_uint(field, link.speed_mbps);
        return NVML_SUCCESS;
    }
}

static nvmlReturn_t violation(nvmlDevice_t device, size_t at, nvmlFieldValue_t *field)
{
    unsigned long long us;
    nvmlReturn_t code = sn_get_counter(device, at, &us);

    if (code == NVML_SUCCESS)
        put_ull(field, us * NS_PER_US);
    return code;
}

static nvmlReturn_t retired(nvmlDevice_t device, size_t at, nvmlFieldValue_t *field)
{
    unsigned int count;
    nvmlReturn_t code = sn_get_word(device, at, &count);

    if (code != NVML_SUCCESS)
        return code;
    if (field->fieldId == FI_RETIRED_PENDING)
        put_uint(field, count);
    else
        put_ull(field, count);
    return NVML_SUCCESS;
}

static nvmlReturn_t by_hand(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    unsigned int id = field->fieldId;

    switch (id) {
    case FI_RETIRED_SBE:
        return retired(device, offsetof(struct sn_device, retired_pages_single_bit_retirement_count), field);
    case FI_RETIRED_DBE:
        return retired(device, offsetof(struct sn_device, retired_pages_double_bit_retirement_count), field);
    case FI_RETIRED_PENDING:
        return retired(device, offsetof(struct sn_device, retired_pages_pending_retirement), field);
    case FI_PERF_POLICY_POWER:
        return violation(device, offsetof(struct sn_device, clocks_throttle_reasons_counters_sw_power_cap_us), field);
    case FI_PERF_POLICY_THERMAL:
        return violation(device, offsetof(struct sn_device, clocks_throttle_reasons_counters_sw_thermal_slowdown_us),
                         field);
    case FI_PERF_POLICY_SYNC_BOOST:
        return violation(device, offsetof(struct sn_device, clocks_throttle_reasons_counters_sync_boost_us), field);
    case FI_NVLINK_SPEED_COMMON:
    case FI_NVLINK_LINK_COUNT:
    case FI_NVSWITCH_LINK_COUNT:
        return from_all_links(device, field);
    case FI_NVLINK_THROUGHPUT_DATA_TX:
    case FI_NVLINK_THROUGHPUT_DATA_RX:
    case FI_NVLINK_THROUGHPUT_RAW_TX:
    case FI_NVLINK_THROUGHPUT_RAW_RX:
        return field->scopeId == ALL_LINKS ? from_all_links(device, field) : from_link(device, field->scopeId, field);
    case FI_NVLINK_REMOTE_LINK:
    case FI_NVLINK_DL_REPLAY:
    case FI_NVLINK_DL_RECOVERY:
    case FI_NVLINK_DL_CRC:
    case FI_NVLINK_SPEED:
    case FI_NVLINK_STATE:
    case FI_NVLINK_VERSION:
        return from_link(device, field->scopeId, field);
    case FI_RESET_REQUIRED:
    case FI_DRAIN_AND_RESET:
        put_uint(field, 0);
        return NVML_SUCCESS;
    default:
        break;
    }
    if (id >= FI_NVLINK_SPEED_L0 && id <= FI_NVLINK_SPEED_L5)
        return from_link(device, id - FI_NVLINK_SPEED_L0, field);
    if (id >= FI_NVLINK_SPEED_L6 && id <= FI_NVLINK_SPEED_L11)
        return from_link(device, id - FI_NVLINK_SPEED_L6 + 6, field);
    return NVML_ERROR_NOT_SUPPORTED;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    long long now = (long long)sn_wall_clock_us();
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (count <= 0 || values == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *field = &values[i];
        const struct sn_field *row = row_of(field->fieldId, field->scopeId);
        field->timestamp = now;
        field->latencyUsec = 0;
        field->value.ullVal = 0;
        field->nvmlReturn = row != NULL ? from_cell(device, row, field) : by_hand(device, field);
    }
    return NVML_SUCCESS;
}
