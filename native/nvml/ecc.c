/* Reliability: ECC mode and counters, SRAM, retired pages, remapped rows, repairs. */
#define _GNU_SOURCE
#include "access.h"
#include "mig.h"

#define AT(member) offsetof(struct sn_device, member)

/* The locations of one counter lie in a row, in this order; SRAM has cells of its own, texture shared memory none. */
static const int place[NVML_MEMORY_LOCATION_COUNT] = {0, 1, 2, 3, 4, -1, 5, -1};
static const size_t counters[NVML_MEMORY_ERROR_TYPE_COUNT][NVML_ECC_COUNTER_TYPE_COUNT] = {
    {AT(ecc_errors_volatile_single_bit_l1_cache), AT(ecc_errors_aggregate_single_bit_l1_cache)},
    {AT(ecc_errors_volatile_double_bit_l1_cache), AT(ecc_errors_aggregate_double_bit_l1_cache)},
};
static const size_t totals[NVML_MEMORY_ERROR_TYPE_COUNT][NVML_ECC_COUNTER_TYPE_COUNT] = {
    {AT(ecc_errors_volatile_single_bit_total), AT(ecc_errors_aggregate_single_bit_total)},
    {AT(ecc_errors_volatile_double_bit_total), AT(ecc_errors_aggregate_double_bit_total)},
};
_Static_assert(AT(ecc_errors_volatile_single_bit_cbu) ==
                   AT(ecc_errors_volatile_single_bit_l1_cache) + 5 * sizeof(struct sn_wide),
               "the locations lie in a row");

/* Counters exist while ECC is on. */
static nvmlReturn_t ecc_is_on(nvmlDevice_t device)
{
    unsigned int mode;
    nvmlReturn_t code = sn_get_word(device, AT(ecc_mode_current), &mode);

    return code == NVML_SUCCESS && mode == 0 ? NVML_ERROR_NOT_SUPPORTED : code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    return sn_get_pair(device, AT(ecc_mode_current), AT(ecc_mode_pending), current, pending);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                                     unsigned long long *count)
{
    nvmlReturn_t code;

    if (type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT || count == NULL)
        return sn_bad_argument(device);
    code = ecc_is_on(device);
    return code == NVML_SUCCESS ? sn_get_wide(device, totals[type][counter], count) : code;
}

static nvmlReturn_t sram(nvmlDevice_t device, unsigned int type, unsigned int counter, unsigned long long *count)
{
    static const struct sn_want uncorrected[NVML_ECC_COUNTER_TYPE_COUNT][2] = {
        {{SN_WIDE, AT(ecc_sram_volatile_uncorrectable_parity)}, {SN_WIDE, AT(ecc_sram_volatile_uncorrectable_secded)}},
        {{SN_WIDE, AT(ecc_sram_aggregate_uncorrectable_parity)},
         {SN_WIDE, AT(ecc_sram_aggregate_uncorrectable_secded)}},
    };
    uint64_t values[2];
    nvmlReturn_t code;

    if (type == NVML_MEMORY_ERROR_TYPE_CORRECTED)
        return sn_get_wide(device,
                           counter == NVML_VOLATILE_ECC ? AT(ecc_sram_volatile_correctable)
                                                        : AT(ecc_sram_aggregate_correctable),
                           count);
    code = sn_get_cells(device, uncorrected[counter], 2, values);
    if (code == NVML_SUCCESS)
        *count = values[0] + values[1];
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                                         unsigned int location, unsigned long long *count)
{
    nvmlReturn_t code;

    if (type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT ||
        location >= NVML_MEMORY_LOCATION_COUNT || count == NULL)
        return sn_bad_argument(device);
    if (sn_is_mig_handle(device))
        return sn_mig_errors(device, location, count);
    code = ecc_is_on(device);
    if (code != NVML_SUCCESS)
        return code;
    if (location == NVML_MEMORY_LOCATION_SRAM)
        return sram(device, type, counter, count);
    if (place[location] < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return sn_get_wide(device, counters[type][counter] + (size_t)place[location] * sizeof(struct sn_wide), count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                                        nvmlEccErrorCounts_t *counts)
{
    nvmlEccErrorCounts_t copy;
    unsigned long long *const out[] = {&copy.l1Cache, &copy.l2Cache, &copy.deviceMemory, &copy.registerFile};
    nvmlReturn_t code = NVML_SUCCESS;

    if (counts == NULL)
        return sn_bad_argument(device);
    for (unsigned int location = 0; code == NVML_SUCCESS && location < 4; location++)
        code = nvmlDeviceGetMemoryErrorCounter(device, type, counter, location, out[location]);
    if (code == NVML_SUCCESS)
        *counts = copy;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, AT(ecc_sram_aggregate_uncorrectable_parity)},
        {SN_WIDE, AT(ecc_sram_aggregate_uncorrectable_secded)},
        {SN_WIDE, AT(ecc_sram_aggregate_correctable)},
        {SN_WIDE, AT(ecc_sram_volatile_uncorrectable_parity)},
        {SN_WIDE, AT(ecc_sram_volatile_uncorrectable_secded)},
        {SN_WIDE, AT(ecc_sram_volatile_correctable)},
        {SN_WIDE, AT(ecc_sram_uncorrectable_sources_l2)},
        {SN_WIDE, AT(ecc_sram_uncorrectable_sources_sm)},
        {SN_WIDE, AT(ecc_sram_uncorrectable_sources_pcie)},
        {SN_WIDE, AT(ecc_sram_uncorrectable_sources_microcontroller)},
        {SN_WIDE, AT(ecc_sram_uncorrectable_sources_other)},
        {SN_WORD, AT(ecc_sram_threshold_exceeded)},
    };
    uint64_t values[12];
    nvmlReturn_t code;

    if (status == NULL)
        return sn_bad_argument(device);
    if (sn_image() != NULL && status->version != SN_TAG(nvmlEccSramErrorStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    code = ecc_is_on(device);
    if (code == NVML_SUCCESS)
        code = sn_get_cells(device, wants, 12, values);
    if (code != NVML_SUCCESS)
        return code;
    memcpy(&status->aggregateUncParity, values, 11 * sizeof(values[0]));
    status->bThresholdExceeded = (unsigned int)values[11];
    return NVML_SUCCESS;
}
_Static_assert(offsetof(nvmlEccSramErrorStatus_v1_t, bThresholdExceeded) ==
                   offsetof(nvmlEccSramErrorStatus_v1_t, aggregateUncParity) + 11 * sizeof(uint64_t),
               "eleven counters in a row, in the order of the wants");

/* Boards that retire pages have retired as many as the profile says; their addresses are not simulated. */
static nvmlReturn_t retired(nvmlDevice_t device, unsigned int cause, unsigned int *count, unsigned long long *addresses,
                            unsigned long long *timestamps)
{
    unsigned int number;
    unsigned int room;
    nvmlReturn_t code;

    if (cause > 1 || count == NULL)
        return sn_bad_argument(device);
    code = sn_get_word(device,
                       cause == 0 ? AT(retired_pages_single_bit_retirement_count)
                                  : AT(retired_pages_double_bit_retirement_count),
                       &number);
    if (code != NVML_SUCCESS)
        return code;
    room = *count;
    *count = number;
    if (room < number)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (number != 0 && addresses == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < number; i++) {
        addresses[i] = 0;
        if (timestamps != NULL)
            timestamps[i] = 0;
    }
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                                   unsigned long long *addresses)
{
    return retired(device, cause, count, addresses, NULL);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                                      unsigned long long *addresses, unsigned long long *timestamps)
{
    return retired(device, cause, count, addresses, timestamps);
}

static const struct sn_want remapped[] = {
    {SN_WORD, AT(remapped_rows_correctable)},
    {SN_WORD, AT(remapped_rows_uncorrectable)},
    {SN_WORD, AT(remapped_rows_pending)},
    {SN_WORD, AT(remapped_rows_failure_occurred)},
};

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                                   unsigned int *uncorrectable, unsigned int *pending,
                                                   unsigned int *failed)
{
    uint64_t values[4];
    nvmlReturn_t code;

    if (correctable == NULL || uncorrectable == NULL || pending == NULL || failed == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, remapped, 4, values);
    if (code == NVML_SUCCESS) {
        *correctable = (unsigned int)values[0];
        *uncorrectable = (unsigned int)values[1];
        *pending = (unsigned int)values[2];
        *failed = (unsigned int)values[3];
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info)
{
    nvmlRemappedRowsInfo_v2_t copy = {0};
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = nvmlDeviceGetRemappedRows(device, &copy.corrActiveRemaps, &copy.uncActiveRemaps, &copy.bPending,
                                     &copy.bFailureOccurred);
    if (code == NVML_SUCCESS)
        code = sn_get_pair(device, AT(remapped_rows_correctable_inactive), AT(remapped_rows_uncorrectable_inactive),
                           &copy.corrInactiveRemaps, &copy.uncInactiveRemaps);
    if (code == NVML_SUCCESS)
        *info = copy;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *banks)
{
    static const struct sn_want wants[] = {
        {SN_WORD, AT(remapped_rows_availability_histogram_max)},
        {SN_WORD, AT(remapped_rows_availability_histogram_high)},
        {SN_WORD, AT(remapped_rows_availability_histogram_partial)},
        {SN_WORD, AT(remapped_rows_availability_histogram_low)},
        {SN_WORD, AT(remapped_rows_availability_histogram_none)},
    };
    uint64_t values[5];
    nvmlReturn_t code;

    if (banks == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 5, values);
    if (code == NVML_SUCCESS)
        *banks = (nvmlRowRemapperHistogramValues_t){(unsigned int)values[0], (unsigned int)values[1],
                                                    (unsigned int)values[2], (unsigned int)values[3],
                                                    (unsigned int)values[4]};
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_v1_t *status)
{
    unsigned int channel;
    unsigned int tpc;
    nvmlReturn_t code;

    if (status == NULL)
        return sn_bad_argument(device);
    code = sn_get_pair(device, AT(repair_channel_pending), AT(repair_tpc_pending), &channel, &tpc);
    if (code == NVML_SUCCESS && status->version != SN_TAG(nvmlRepairStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        status->bChannelRepairPending = channel;
        status->bTpcRepairPending = tpc;
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device,
                                                                nvmlUnrepairableMemoryStatus_v1_t *status)
{
    return sn_get_word(device, AT(repair_unrepairable_memory), status == NULL ? NULL : &status->bUnrepairableMemory);
}

/* Where the uncorrected errors of the SRAMs lie is not simulated: there is none that is told apart. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(
    nvmlDevice_t device, nvmlEccSramUniqueUncorrectedErrorCounts_v1_t *counts)
{
    unsigned int pending;
    nvmlReturn_t code;

    if (counts == NULL)
        return sn_bad_argument(device);
    code = ecc_is_on(device);
    if (code == NVML_SUCCESS)
        code = sn_get_word(device, AT(remapped_rows_pending), &pending); /* since Ampere */
    if (code != NVML_SUCCESS)
        return code;
    if (counts->version != SN_TAG(nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    counts->entryCount = 0;
    return NVML_SUCCESS;
}
