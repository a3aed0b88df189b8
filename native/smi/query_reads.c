/* How a row of the table gets its value, and how a value is written. */
#define _GNU_SOURCE
#include "query_reads.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../nvml/thermal.h"
#include "processes.h"

#define US_PER_S 1000000u
#define US_PER_MS 1000u
#define MW_PER_W 1000u
#define FI_MEMORY_TEMPERATURE 82

nvmlReturn_t query_tell(const struct subject *subject, const struct element *element, uint64_t value, char *out)
{
    query_put(subject, element, value, out);
    return NVML_SUCCESS;
}

nvmlReturn_t query_tell_text(const char *text, char *out)
{
    snprintf(out, QUERY_VALUE_BYTES, "%s", text);
    return NVML_SUCCESS;
}

/* Single precision, as nvidia-smi's rounding tells. */
void show_watts(const struct subject *subject, const struct element *element, uint64_t value, char *out)
{
    (void)subject;
    (void)element;
    snprintf(out, QUERY_VALUE_BYTES, "%.2f W", (double)((float)value / MW_PER_W));
}

void show_draw(const struct subject *subject, const struct element *element, uint64_t value, char *out)
{
    show_watts(subject, element, value < MW_PER_W ? MW_PER_W : value, out);
}

/* Rounded down by drivers before 550. */
void show_mib(const struct subject *subject, const struct element *element, uint64_t value, char *out)
{
    (void)element;
    snprintf(out, QUERY_VALUE_BYTES, "%llu MiB",
             subject->driver < 550000 ? (unsigned long long)value / SMI_MIB : smi_mib(value));
}

nvmlReturn_t read_refused(const struct subject *subject, const struct element *element, char *out)
{
    (void)element;
    (void)out;
    return sn_refuse_device(subject->device);
}

nvmlReturn_t read_gsp_version(const struct subject *subject, const struct element *element, char *out)
{
    (void)element;
    return nvmlDeviceGetGspFirmwareVersion(subject->device, out);
}

nvmlReturn_t read_inforom_object(const struct subject *subject, const struct element *element, char *out)
{
    return nvmlDeviceGetInforomVersion(subject->device, element->which, out, QUERY_VALUE_BYTES);
}

/* Where the user is. */
nvmlReturn_t read_bbx_time(const struct subject *subject, const struct element *element, char *out)
{
    struct bbx bbx;
    struct tm local;
    char moment[32];
    nvmlReturn_t code = fill_bbx(subject->device, &bbx);
    time_t seconds;

    (void)element;
    if (code != NVML_SUCCESS)
        return code;
    seconds = (time_t)(bbx.time_us / US_PER_S);
    strftime(moment, sizeof(moment), "%Y/%m/%d %H:%M:%S", localtime_r(&seconds, &local));
    snprintf(out, QUERY_VALUE_BYTES, "%s.%03llu", moment, bbx.time_us % US_PER_S / US_PER_MS);
    return NVML_SUCCESS;
}

/* Either without the other is not told. */
nvmlReturn_t read_atomics(const struct subject *subject, const struct element *element, char *out)
{
    static const char *const names[] = {"FETCHADD_32", "FETCHADD_64", "SWAP_32", "SWAP_64",
                                        "CAS_32",      "CAS_64",      "CAS_128"};
    unsigned int mask[2];
    nvmlReturn_t code = sn_get_pair(subject->device, offsetof(struct sn_device, pcie_atomic_caps_outbound),
                                    offsetof(struct sn_device, pcie_atomic_caps_inbound), &mask[0], &mask[1]);
    int at = 0;

    if (code != NVML_SUCCESS)
        return code;
    if (mask[element->which] == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = '\0';
    for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((mask[element->which] >> i & 1) != 0)
            at += snprintf(out + at, (size_t)(QUERY_VALUE_BYTES - at), "%s ", names[i]);
    return NVML_SUCCESS;
}

static nvmlReturn_t get_reasons(nvmlDevice_t device, unsigned long long *supported, unsigned long long *active)
{
    nvmlReturn_t code = nvmlDeviceGetSupportedClocksEventReasons(device, supported);

    return code == NVML_SUCCESS ? nvmlDeviceGetCurrentClocksEventReasons(device, active) : code;
}

nvmlReturn_t read_reasons(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long supported;
    unsigned long long active;

    (void)element;
    (void)out;
    return get_reasons(subject->device, &supported, &active);
}

nvmlReturn_t read_reason(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long supported;
    unsigned long long active;
    nvmlReturn_t code = get_reasons(subject->device, &supported, &active);

    if (code != NVML_SUCCESS)
        return code;
    if ((supported & element->which) == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return query_tell_text((active & element->which) != 0 ? "Active" : "Not Active", out);
}

static nvmlReturn_t get_ecc_count(const struct subject *subject, unsigned int scope, unsigned int location,
                                  unsigned long long *count)
{
    return subject->ecc_on ? nvmlDeviceGetMemoryErrorCounter(subject->device, (int)(scope & 1), (int)(scope >> 1),
                                                             (int)location, count)
                           : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t read_ecc_count(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long count;
    nvmlReturn_t code = get_ecc_count(subject, element->scope, element->which, &count);

    return code == NVML_SUCCESS ? query_tell(subject, element, count, out) : code;
}

/* The sum of those that can be told. */
nvmlReturn_t read_ecc_total(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long sum = 0;

    for (unsigned int i = NVML_MEMORY_LOCATION_L1_CACHE; i <= NVML_MEMORY_LOCATION_CBU; i++) {
        unsigned long long count;
        if (get_ecc_count(subject, element->scope, i, &count) == NVML_SUCCESS)
            sum += count;
    }
    return subject->ecc_on ? query_tell(subject, element, sum, out) : NVML_ERROR_NOT_SUPPORTED;
}

/* A MIG device that counts no errors has none. */
nvmlReturn_t read_mig_errors(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long count = 0;
    nvmlReturn_t code = nvmlDeviceGetMemoryErrorCounter(subject->device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                                        NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_SRAM, &count);

    if (code == NVML_ERROR_NOT_SUPPORTED)
        count = 0;
    else if (code != NVML_SUCCESS)
        return code;
    return query_tell(subject, element, count, out);
}

nvmlReturn_t read_sram(const struct subject *subject, const struct element *element, char *out)
{
    nvmlEccSramErrorStatus_v1_t status = {.version = SN_TAG(nvmlEccSramErrorStatus_v1_t, 1)};
    uint64_t value;
    nvmlReturn_t code;

    if (!subject->ecc_on)
        return NVML_ERROR_NOT_SUPPORTED;
    code = nvmlDeviceGetSramEccErrorStatus(subject->device, &status);
    memcpy(&value, (const char *)&status + element->which, sizeof(value));
    return code == NVML_SUCCESS ? query_tell(subject, element, value, out) : code;
}

nvmlReturn_t read_temperature(const struct subject *subject, const struct element *element, char *out)
{
    unsigned int celsius;
    nvmlReturn_t code = nvmlDeviceGetTemperature(subject->device, 0, &celsius);

    return code == NVML_SUCCESS ? query_tell(subject, element, celsius, out) : code;
}

nvmlReturn_t read_bus_id(const struct subject *subject, const struct element *element, char *out)
{
    nvmlPciInfoExt_v1_t pci;
    nvmlReturn_t code = fill_pci(subject->device, &pci);

    (void)element;
    return code == NVML_SUCCESS ? query_tell_text(pci.busId, out) : code;
}

nvmlReturn_t read_margin(const struct subject *subject, const struct element *element, char *out)
{
    int celsius;
    nvmlReturn_t code = sn_get_margin(subject->device, &celsius);

    return code == NVML_SUCCESS ? query_tell(subject, element, (uint64_t)(int64_t)celsius, out) : code;
}

/* Whatever the reason, a sensor that does not answer is said to be missing. */
nvmlReturn_t read_memory_temperature(const struct subject *subject, const struct element *element, char *out)
{
    nvmlFieldValue_t field = {.fieldId = FI_MEMORY_TEMPERATURE};
    nvmlReturn_t code = nvmlDeviceGetFieldValues(subject->device, 1, &field);

    if (code != NVML_SUCCESS)
        return code;
    if (field.nvmlReturn != NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    return query_tell(subject, element, field.value.uiVal, out);
}

/* So is this one. */
nvmlReturn_t read_target_temperature(const struct subject *subject, const struct element *element, char *out)
{
    unsigned int celsius;

    if (nvmlDeviceGetTemperatureThreshold(subject->device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &celsius) !=
        NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    return query_tell(subject, element, celsius, out);
}

/* So is what is not known of this. */
nvmlReturn_t read_egm(const struct subject *subject, const struct element *element, char *out)
{
    nvmlDeviceCapabilities_v1_t capabilities = {.version = SN_TAG(nvmlDeviceCapabilities_v1_t, 1)};

    if (nvmlDeviceGetCapabilities(subject->device, &capabilities) != NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    return query_tell(subject, element, capabilities.capMask & 1, out);
}

nvmlReturn_t read_process_word(const struct subject *subject, const struct element *element, char *out)
{
    uint32_t value;

    memcpy(&value, (const char *)subject->process + element->which, sizeof(value));
    return value == SN_NO_INSTANCE ? NVML_ERROR_NOT_SUPPORTED : query_tell(subject, element, value, out);
}

nvmlReturn_t read_process_type(const struct subject *subject, const struct element *element, char *out)
{
    (void)element;
    return query_tell_text(smi_process_type(subject->process_types), out);
}

/* XML, that is the row that has an element, cannot take every name as it is. */
nvmlReturn_t read_process_name(const struct subject *subject, const struct element *element, char *out)
{
    char name[SMI_OWN_NAME_BYTES];

    smi_process_name(subject->process, name);
    if (element->xml == NULL)
        return query_tell_text(name, out);
    page_escape(name, out, QUERY_VALUE_BYTES);
    return NVML_SUCCESS;
}

nvmlReturn_t read_process_memory(const struct subject *subject, const struct element *element, char *out)
{
    uint64_t bytes = subject->process->used_bytes;

    if (bytes == SMI_UNKNOWN_BYTES && element->xml == NULL)
        return query_tell_text("Not available in WDDM driver model", out);
    if (bytes == SMI_UNKNOWN_BYTES)
        return NVML_ERROR_NOT_SUPPORTED;
    return query_tell(subject, element, bytes / SMI_MIB, out);
}
