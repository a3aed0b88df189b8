/* nvmlDeviceGetFieldValues: the driver's number for a field becomes the newest header's, and that one a row of the
 * table of cells, a rule, or a link's business. */
#define _GNU_SOURCE
#include "access.h"
#include "driver.h"
#include "field_links.h"
#include "field_value.h"

struct sn_field {
    unsigned int id;
    int scope; /* -1: any */
    enum sn_kind kind;
    nvmlValueType_t type;
    size_t at;
};

struct sn_field_limit {
    unsigned int first; /* driver */
    unsigned int limit; /* the first id that it does not have */
};

struct sn_field_move {
    unsigned int first;
    unsigned int end;
    unsigned int here;
    unsigned int ids;
    unsigned int there;
};

#include "field_numbers.h"
#include "field_table.h"

#define AT(member) offsetof(struct sn_device, member)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NO_FIELD 0
#define NS_PER_US 1000
#define ARCHITECTURE_HOPPER 9
#define C2C_LINKS 10
#define C2C_LINK_MBPS 44712

enum {
    FI_RETIRED_SBE = 29,
    FI_RETIRED_DBE = 30,
    FI_RETIRED_PENDING = 31,
    FI_PERF_POLICY_POWER = 74,
    FI_PERF_POLICY_THERMAL = 75,
    FI_PERF_POLICY_SYNC_BOOST = 76,
    FI_PERF_POLICY_BOARD_LIMIT = 77,
    FI_PERF_POLICY_LOW_UTILIZATION = 78,
    FI_PERF_POLICY_RELIABILITY = 79,
    FI_PERF_POLICY_TOTAL_BASE_CLOCKS = 81,
    FI_RETIRED_PENDING_SBE = 92,
    FI_RETIRED_PENDING_DBE = 93,
    FI_C2C_LINK_COUNT = 170,
    FI_C2C_LINK_STATUS = 171,
    FI_C2C_LINK_MBPS = 172,
    FI_RESETLESS_MIG = 184,
    FI_MIG_MODE_INDEPENDENT = 199,
    FI_C2C_ERRORS_FIRST = 231,
    FI_C2C_POWER_STATE = 234,
    FI_SMOOTHING_FIRST = 251,
    FI_SMOOTHING_LAST = 268,
    FI_SW_THERMAL_SLOWDOWN = 269,
    FI_HW_THERMAL_SLOWDOWN = 270,
    FI_HW_POWER_BRAKE_SLOWDOWN = 271,
    FI_SMOOTHING_MORE_FIRST = 275,
    FI_SMOOTHING_MORE_LAST = 288
};

static unsigned int limit_of(unsigned int driver)
{
    unsigned int limit = 0;

    for (size_t i = 0; i < COUNT_OF(sn_field_limits) && sn_field_limits[i].first <= driver; i++)
        limit = sn_field_limits[i].limit;
    return limit;
}

static unsigned int newest_number(unsigned int driver, unsigned int limit, unsigned int id)
{
    if (id >= limit)
        return NO_FIELD;
    for (size_t i = 0; i < COUNT_OF(sn_field_moves); i++) {
        const struct sn_field_move *move = &sn_field_moves[i];
        if (driver >= move->first && driver < move->end && id - move->here < move->ids)
            return id - move->here + move->there;
    }
    return id;
}

static const struct sn_field *row_of(unsigned int id, unsigned int scope)
{
    size_t first = 0;

    for (size_t end = COUNT_OF(sn_fields); first < end;) {
        size_t middle = (first + end) / 2;
        if (sn_fields[middle].id < id)
            first = middle + 1;
        else
            end = middle;
    }
    for (size_t i = first; i < COUNT_OF(sn_fields) && sn_fields[i].id == id; i++)
        if (sn_fields[i].scope < 0 || (unsigned int)sn_fields[i].scope == scope)
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

/* Time lost for one cause, in ns. */
static nvmlReturn_t violation(nvmlDevice_t device, size_t at, nvmlFieldValue_t *field)
{
    unsigned long long us;
    nvmlReturn_t code = sn_get_counter(device, at, &us);

    return code == NVML_SUCCESS ? sn_put_ull(field, us * NS_PER_US) : code;
}

/* What no board accounts for is 0 where it accounts for anything. */
static nvmlReturn_t no_violation(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    nvmlReturn_t code = violation(device, AT(clocks_throttle_reasons_counters_sw_power_cap_us), field);

    return code == NVML_SUCCESS ? sn_put_ull(field, 0) : code;
}

static nvmlReturn_t retired(nvmlDevice_t device, size_t at, nvmlFieldValue_t *field)
{
    unsigned int count;
    nvmlReturn_t code = sn_get_word(device, at, &count);

    return code == NVML_SUCCESS ? sn_put_ull(field, count) : code;
}

static nvmlReturn_t retirement_pending(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    unsigned int pending;
    nvmlReturn_t code = sn_get_word(device, AT(retired_pages_pending_retirement), &pending);

    return code == NVML_SUCCESS ? sn_put_uint(field, pending) : code;
}

/* Hopper was the first to change its MIG mode without a reset; boards without MIG have no such field. */
static nvmlReturn_t mig_without_reset(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    unsigned int architecture;
    unsigned int mode;
    nvmlReturn_t code = sn_get_pair(device, AT(mig_mode_current), AT(architecture), &mode, &architecture);

    return code == NVML_SUCCESS ? sn_put_uint(field, architecture >= ARCHITECTURE_HOPPER) : code;
}

/* A superchip's 450 GB/s in each direction, in links of equal speed, which two GPUs share since Blackwell. */
static nvmlReturn_t c2c(nvmlDevice_t device, unsigned int id, unsigned int link, nvmlFieldValue_t *field)
{
    unsigned int enabled;
    unsigned int architecture;
    unsigned int links;
    nvmlReturn_t code = sn_get_pair(device, AT(c2c_mode), AT(architecture), &enabled, &architecture);

    if (code != NVML_SUCCESS)
        return code;
    links = enabled == 0 ? 0 : architecture > ARCHITECTURE_HOPPER ? C2C_LINKS / 2 : C2C_LINKS;
    if (id == FI_C2C_LINK_COUNT)
        return sn_put_uint(field, links);
    if (links == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (link >= links)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (id == FI_C2C_LINK_STATUS)
        return sn_put_uint(field, 1);
    return sn_put_uint(field, id == FI_C2C_LINK_MBPS ? C2C_LINK_MBPS : 0); /* no errors, full power */
}

/* Boards that smooth their power tell an administrator how; their cell says what others are told. */
static nvmlReturn_t power_smoothing(nvmlDevice_t device, unsigned int id, nvmlFieldValue_t *field)
{
    unsigned int enabled;
    nvmlReturn_t code = sn_get_word(device, AT(power_smoothing_mode), &enabled);

    if (code != NVML_SUCCESS)
        return code;
    return id == FI_SMOOTHING_FIRST ? sn_put_uint(field, enabled) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t by_rule(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field)
{
    switch (id) {
    case FI_RETIRED_SBE:
        return retired(device, AT(retired_pages_single_bit_retirement_count), field);
    case FI_RETIRED_DBE:
        return retired(device, AT(retired_pages_double_bit_retirement_count), field);
    case FI_RETIRED_PENDING:
    case FI_RETIRED_PENDING_SBE:
    case FI_RETIRED_PENDING_DBE:
        return retirement_pending(device, field);
    case FI_PERF_POLICY_POWER:
        return violation(device, AT(clocks_throttle_reasons_counters_sw_power_cap_us), field);
    case FI_PERF_POLICY_THERMAL:
    case FI_SW_THERMAL_SLOWDOWN:
        return violation(device, AT(clocks_throttle_reasons_counters_sw_thermal_slowdown_us), field);
    case FI_PERF_POLICY_SYNC_BOOST:
        return violation(device, AT(clocks_throttle_reasons_counters_sync_boost_us), field);
    case FI_HW_THERMAL_SLOWDOWN:
        return violation(device, AT(clocks_throttle_reasons_counters_hw_thermal_slowdown_us), field);
    case FI_HW_POWER_BRAKE_SLOWDOWN:
        return violation(device, AT(clocks_throttle_reasons_counters_hw_power_brake_slowdown_us), field);
    case FI_PERF_POLICY_BOARD_LIMIT:
    case FI_PERF_POLICY_LOW_UTILIZATION:
    case FI_PERF_POLICY_RELIABILITY:
    case FI_PERF_POLICY_TOTAL_BASE_CLOCKS:
        return no_violation(device, field);
    case FI_C2C_LINK_COUNT:
    case FI_C2C_LINK_STATUS:
    case FI_C2C_LINK_MBPS:
        return c2c(device, id, scope, field);
    case FI_RESETLESS_MIG:
    case FI_MIG_MODE_INDEPENDENT:
        return mig_without_reset(device, field);
    default:
        break;
    }
    if (id >= FI_C2C_ERRORS_FIRST && id <= FI_C2C_POWER_STATE)
        return c2c(device, id, scope, field);
    if ((id >= FI_SMOOTHING_FIRST && id <= FI_SMOOTHING_LAST) ||
        (id >= FI_SMOOTHING_MORE_FIRST && id <= FI_SMOOTHING_MORE_LAST))
        return power_smoothing(device, id, field);
    return sn_get_link_field(device, id, scope, field);
}

static nvmlReturn_t get_field(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field)
{
    const struct sn_field *row = row_of(id, scope);

    return row != NULL ? from_cell(device, row, field) : by_rule(device, id, scope, field);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    long long now = (long long)sn_wall_clock_us();
    unsigned int driver;
    unsigned int limit;
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (count <= 0 || values == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    driver = sn_driver();
    limit = limit_of(driver);
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *field = &values[i];
        unsigned int id = newest_number(driver, limit, field->fieldId);
        field->timestamp = now;
        field->latencyUsec = 0;
        field->value.ullVal = 0;
        field->nvmlReturn = id == NO_FIELD ? NVML_ERROR_NOT_SUPPORTED : get_field(device, id, field->scopeId, field);
    }
    return NVML_SUCCESS;
}
