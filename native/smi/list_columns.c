/* What the queries tell of each process, clock or page, and of remapped rows. */
#define _GNU_SOURCE
#include <stdio.h>

#include "lists.h"
#include "sources.h"

#define GPU_COLUMNS                                                                                                    \
    {.name = "timestamp", .text = smi_timestamp}, {.name = "gpu_name", .text = smi_identity, .which = SMI_NAME},       \
        {.name = "gpu_bus_id", .text = smi_identity, .which = SMI_BUS_ID},                                             \
        {.name = "gpu_serial", .text = smi_identity, .which = SMI_SERIAL},                                             \
        {.name = "gpu_uuid", .text = smi_identity, .which = SMI_UUID}

enum { CORRECTABLE, UNCORRECTABLE, PENDING, FAILURE, REMAPPED };
enum { MEMORY_CLOCK, GRAPHICS_CLOCK };
enum { PID, USED_BYTES };
enum { ADDRESS, TIME };

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                       unsigned int *pending, unsigned int *failure);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length);

static nvmlReturn_t process(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    if (row->item->code != NVML_SUCCESS)
        return row->item->code;
    if (which == USED_BYTES && row->item->used_bytes == ~0ull)
        return NVML_ERROR_NOT_SUPPORTED;
    smi_decimal(which == PID ? row->item->pid : row->item->used_bytes / SMI_MIB, out);
    return NVML_SUCCESS;
}

/* A comma would end the cell. */
static nvmlReturn_t process_name(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    nvmlReturn_t code = row->item->code;

    (void)which;
    if (code == NVML_SUCCESS)
        code = nvmlSystemGetProcessName(row->item->pid, out, SMI_PROCESS_NAME_BYTES);
    for (char *at = out; code == NVML_SUCCESS && *at != '\0'; at++)
        if (*at == ',')
            *at = '?';
    return code;
}

/* Nothing was accounted for: there is a row only where the list is refused. */
static nvmlReturn_t accounted(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    (void)which;
    (void)out;
    return row->item->code;
}

static nvmlReturn_t clock_pair(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    if (row->item->code == NVML_SUCCESS)
        smi_decimal(which == MEMORY_CLOCK ? row->item->memory_mhz : row->item->graphics_mhz, out);
    return row->item->code;
}

/* nvidia-smi asks for no time and shows that it has none. */
static nvmlReturn_t page(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    if (row->item->code != NVML_SUCCESS)
        return row->item->code;
    if (which == ADDRESS)
        snprintf(out, SMI_CELL_BYTES, "0x%016llx", row->item->address);
    else
        snprintf(out, SMI_CELL_BYTES, "(null)");
    return NVML_SUCCESS;
}

static nvmlReturn_t cause(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    (void)which;
    snprintf(out, SMI_CELL_BYTES, "%s", row->item->cause == 0 ? "Single Bit ECC" : "Double Bit ECC");
    return NVML_SUCCESS;
}

static nvmlReturn_t remapped(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int parts[REMAPPED] = {0};
    nvmlReturn_t code =
        nvmlDeviceGetRemappedRows(device, &parts[CORRECTABLE], &parts[UNCORRECTABLE], &parts[PENDING], &parts[FAILURE]);

    *out = parts[which];
    return code;
}

static const struct smi_column compute_apps[] = {
    GPU_COLUMNS,
    {.name = "pid", .text = process, .which = PID},
    {.name = "process_name", .alias = "name", .text = process_name},
    {.name = "used_gpu_memory", .alias = "used_memory", .unit = "MiB", .text = process, .which = USED_BYTES},
};

static const struct smi_column accounted_apps[] = {
    GPU_COLUMNS,
    {.name = "vgpu_instance", .text = accounted},
    {.name = "pid", .text = accounted},
    {.name = "gpu_utilization", .alias = "gpu_util", .unit = "%", .text = accounted},
    {.name = "mem_utilization", .alias = "mem_util", .unit = "%", .text = accounted},
    {.name = "max_memory_usage", .unit = "MiB", .text = accounted},
    {.name = "time", .unit = "ms", .text = accounted},
};

static const struct smi_column supported_clocks[] = {
    GPU_COLUMNS,
    {.name = "memory", .alias = "mem", .unit = "MHz", .text = clock_pair, .which = MEMORY_CLOCK},
    {.name = "graphics", .alias = "gr", .unit = "MHz", .text = clock_pair, .which = GRAPHICS_CLOCK},
};

static const struct smi_column retired_pages[] = {
    GPU_COLUMNS,
    {.name = "retired_pages.address", .text = page, .which = ADDRESS},
    {.name = "retired_pages.timestamp", .text = page, .which = TIME},
    {.name = "retired_pages.cause", .text = cause},
};

static const struct smi_column remapped_rows[] = {
    GPU_COLUMNS,
    {.name = "remapped_rows.correctable", .style = smi_decimal, .number = remapped, .which = CORRECTABLE},
    {.name = "remapped_rows.uncorrectable", .style = smi_decimal, .number = remapped, .which = UNCORRECTABLE},
    {.name = "remapped_rows.pending", .style = smi_decimal, .number = remapped, .which = PENDING},
    {.name = "remapped_rows.failure", .style = smi_decimal, .number = remapped, .which = FAILURE},
};

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

struct smi_query smi_list_query(enum smi_subject subject)
{
    static const struct smi_query queries[] = {
        [SMI_COMPUTE_APPS] = {compute_apps, COUNT(compute_apps), smi_compute_apps},
        [SMI_ACCOUNTED_APPS] = {accounted_apps, COUNT(accounted_apps), smi_accounted_apps},
        [SMI_SUPPORTED_CLOCKS] = {supported_clocks, COUNT(supported_clocks), smi_supported_clocks},
        [SMI_RETIRED_PAGES] = {retired_pages, COUNT(retired_pages), smi_pages},
        [SMI_REMAPPED_ROWS] = {remapped_rows, COUNT(remapped_rows), NULL},
    };

    return queries[subject];
}
