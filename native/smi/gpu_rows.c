/* A GPU's three lines of the table: what it is, how it does, and whether it is or will be partitioned. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "row.h"
#include "smi.h"

#define MW_PER_W 1000u
#define PSTATE_UNKNOWN 32u

static const char frame[] = "|                                         |                        |                      |";

/* The uncorrected errors since the driver was loaded, "Off", or "On" for a partitioned GPU, whose MIG devices have the
 * counts; a star where the next reset changes the mode. */
static void put_ecc(struct row *row, nvmlDevice_t device)
{
    unsigned int current;
    unsigned int pending;
    unsigned int mig;
    unsigned int mig_pending;
    unsigned long long count;
    char text[32];
    const char *star;
    nvmlReturn_t code = nvmlDeviceGetEccMode(device, &current, &pending);

    if (code != NVML_SUCCESS) {
        row_format(row, 69, 20, "%20s", smi_mark(code));
        return;
    }
    star = current == pending ? "" : "*";
    if (current == 0) {
        snprintf(text, sizeof(text), "Off%s", star);
    } else if (nvmlDeviceGetMigMode(device, &mig, &mig_pending) == NVML_SUCCESS && mig == 1) {
        snprintf(text, sizeof(text), "On%s", star);
    } else {
        code = nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &count);
        if (code == NVML_SUCCESS)
            snprintf(text, sizeof(text), "%llu%s", count, star);
        else
            snprintf(text, sizeof(text), "%s", smi_mark(code));
    }
    row_format(row, 69, 20, "%20s", text);
}

static void print_identity(nvmlDevice_t device)
{
    struct row row;
    char name[SMI_NAME_BYTES];
    nvmlPciInfo_t pci;
    unsigned int index;
    unsigned int on;
    nvmlReturn_t index_code = nvmlDeviceGetIndex(device, &index);
    nvmlReturn_t code;

    row_start(&row, frame);
    if (index_code == NVML_SUCCESS)
        row_format(&row, 2, 4, "%3d", (int)index);
    else
        row_put(&row, 2, 4, smi_mark(index_code));
    code = nvmlDeviceGetName(device, name, sizeof(name));
    row_put(&row, 7, 27, code == NVML_SUCCESS ? name : smi_mark(code));
    code = nvmlDeviceGetPersistenceMode(device, &on);
    row_put(&row, 37, 4, code != NVML_SUCCESS ? smi_mark(code) : on == 1 ? " On" : " Off");
    code = nvmlDeviceGetPciInfo_v3(device, &pci);
    row_put(&row, 46, 16, code == NVML_SUCCESS ? pci.busId : smi_mark(code));
    code = nvmlDeviceGetDisplayActive(device, &on);
    row_format(&row, 62, 4, "%4s", code != NVML_SUCCESS ? smi_mark(code) : on == 1 ? "On" : "Off");
    put_ecc(&row, device);
    row_print(&row);
}

static void put_power(struct row *row, nvmlDevice_t device)
{
    unsigned int mw;
    nvmlReturn_t code = nvmlDeviceGetPowerUsage(device, &mw);

    if (code == NVML_SUCCESS)
        row_format(row, 29, 4, "%3uW", mw < MW_PER_W ? 1 : mw / MW_PER_W);
    else
        row_format(row, 29, 4, "%4s", smi_mark(code));
    row_put(row, 34, 1, "/");
    code = nvmlDeviceGetEnforcedPowerLimit(device, &mw);
    if (code == NVML_SUCCESS)
        row_format(row, 36, 5, "%4uW", mw / MW_PER_W);
    else
        row_format(row, 36, 5, "%4s", smi_mark(code));
}

static void put_memory(struct row *row, nvmlDevice_t device)
{
    nvmlMemory_v2_t memory = {.version = SN_TAG(nvmlMemory_v2_t, 2)};
    nvmlReturn_t code = nvmlDeviceGetMemoryInfo_v2(device, &memory);

    if (code == NVML_SUCCESS)
        row_format(row, 45, 21, "%6lluMiB / %6lluMiB", smi_mib(memory.used), smi_mib(memory.total));
    else if (code == NVML_ERROR_NO_PERMISSION)
        row_put(row, 61, 3, "N/A");
    else
        row_put(row, 44, 22, code == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : smi_words(code));
}

static void put_compute_mode(struct row *row, nvmlDevice_t device)
{
    static const char *const modes[] = {"Default", "E. Thread", "Prohibited", "E. Process"};
    unsigned int mode;
    nvmlReturn_t code = nvmlDeviceGetComputeMode(device, &mode);
    const char *text = "Unknown";

    if (code != NVML_SUCCESS)
        text = smi_mark(code);
    else if (mode < sizeof(modes) / sizeof(modes[0]))
        text = modes[mode];
    row_format(row, 78, 11, "%11s", text);
}

static void print_readings(nvmlDevice_t device)
{
    struct row row;
    unsigned int value;
    nvmlUtilization_t rates;
    nvmlReturn_t code = nvmlDeviceGetFanSpeed(device, &value);

    row_start(&row, frame);
    if (code == NVML_SUCCESS)
        row_format(&row, 1, 5, "%3d%%", (int)value);
    else
        row_format(&row, 1, 5, "%4s", smi_mark(code));
    code = nvmlDeviceGetTemperature(device, 0, &value);
    if (code == NVML_SUCCESS)
        row_format(&row, 7, 5, "%3dC", (int)value);
    else
        row_format(&row, 7, 5, "%4s", smi_mark(code));
    code = nvmlDeviceGetPerformanceState(device, &value);
    if (code == NVML_SUCCESS && value != PSTATE_UNKNOWN)
        row_format(&row, 13, 4, value < 10 ? "  P%u" : value < 100 ? " P%u" : "P%u", value);
    else
        row_format(&row, 12, 5, "%4s", code == NVML_SUCCESS ? "ERR!" : smi_mark(code));
    put_power(&row, device);
    put_memory(&row, device);
    code = nvmlDeviceGetUtilizationRates(device, &rates);
    if (code == NVML_SUCCESS)
        row_format(&row, 72, 6, "%3d%%", (int)rates.gpu);
    else
        row_format(&row, 72, 5, "%4s", smi_mark(code));
    put_compute_mode(&row, device);
    row_print(&row);
}

/* What the mode will be after the next reset, with a star where that is a change. */
static void print_mig_mode(nvmlDevice_t device)
{
    struct row row;
    unsigned int current;
    unsigned int pending;
    char text[16];
    nvmlReturn_t code = nvmlDeviceGetMigMode(device, &current, &pending);

    row_start(&row, frame);
    if (code == NVML_SUCCESS)
        snprintf(text, sizeof(text), "%s%s", pending == 1 ? "Enabled" : "Disabled", current == pending ? "" : "*");
    else
        strcpy(text, code == NVML_ERROR_NOT_SUPPORTED ? "N/A" : "ERR!");
    row_format(&row, 69, 20, "%20s", text);
    row_print(&row);
}

void smi_gpu_rows(nvmlDevice_t device)
{
    print_identity(device);
    print_readings(device);
    print_mig_mode(device);
    puts("+-----------------------------------------+------------------------+----------------------+");
}
