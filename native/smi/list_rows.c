/* The rows of the queries about processes, clocks and pages; a list that is refused is one row that says why. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "lists.h"
#include "slots.h"

#define MOST_APPS 250
#define CAUSES 2

typedef nvmlReturn_t clock_list(nvmlDevice_t device, unsigned int *count, unsigned int *mhz);

clock_list nvmlDeviceGetSupportedMemoryClocks;
clock_list nvmlDeviceGetAccountingPids;
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                       unsigned long long *addresses);

static void add(struct smi_rows *rows, struct smi_item item)
{
    struct smi_item *items = realloc(rows->items, (rows->count + 1) * sizeof(*items));

    if (items == NULL)
        return;
    items[rows->count++] = item;
    rows->items = items;
}

static void add_refusal(struct smi_rows *rows, nvmlReturn_t code)
{
    add(rows, (struct smi_item){.code = code});
}

void smi_compute_apps(nvmlDevice_t device, struct smi_rows *rows)
{
    nvmlReturn_t (*list)(nvmlDevice_t, unsigned int *, struct sn_private_process *) =
        (void *)smi_slot(SMI_SLOT_COMPUTE_APPS);
    struct sn_private_process *entries = calloc(MOST_APPS, sizeof(*entries));
    unsigned int count = MOST_APPS;
    nvmlReturn_t code = entries == NULL ? NVML_ERROR_MEMORY : list(device, &count, entries);

    if (code != NVML_SUCCESS)
        add_refusal(rows, code);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++)
        add(rows, (struct smi_item){.pid = entries[i].detail.pid, .used_bytes = entries[i].detail.usedGpuMemory});
    free(entries);
}

void smi_accounted_apps(nvmlDevice_t device, struct smi_rows *rows)
{
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetAccountingPids(device, &count, NULL);

    if (code != NVML_SUCCESS)
        add_refusal(rows, code);
}

/* Twice asked: how many, then which. Null with *code SUCCESS: there are none. */
static unsigned int *ask_clocks(nvmlDevice_t device, const unsigned int *memory_mhz, unsigned int *count,
                                nvmlReturn_t *code)
{
    unsigned int *mhz = NULL;

    *count = 0;
    for (int turn = 0; turn < 2; turn++) {
        *code = memory_mhz == NULL ? nvmlDeviceGetSupportedMemoryClocks(device, count, mhz)
                                   : nvmlDeviceGetSupportedGraphicsClocks(device, *memory_mhz, count, mhz);
        if (turn == 0 && *code == NVML_ERROR_INSUFFICIENT_SIZE)
            mhz = malloc(*count * sizeof(*mhz));
    }
    if (*code != NVML_SUCCESS) {
        free(mhz);
        return NULL;
    }
    return mhz;
}

static void add_graphics_clocks(nvmlDevice_t device, unsigned int memory_mhz, struct smi_rows *rows)
{
    unsigned int count;
    nvmlReturn_t code;
    unsigned int *mhz = ask_clocks(device, &memory_mhz, &count, &code);

    if (code != NVML_SUCCESS)
        add_refusal(rows, code);
    for (unsigned int i = 0; mhz != NULL && i < count; i++)
        add(rows, (struct smi_item){.memory_mhz = memory_mhz, .graphics_mhz = mhz[i]});
    free(mhz);
}

void smi_supported_clocks(nvmlDevice_t device, struct smi_rows *rows)
{
    unsigned int count;
    nvmlReturn_t code;
    unsigned int *mhz = ask_clocks(device, NULL, &count, &code);

    if (code != NVML_SUCCESS)
        add_refusal(rows, code);
    for (unsigned int i = 0; mhz != NULL && i < count; i++)
        add_graphics_clocks(device, mhz[i], rows);
    free(mhz);
}

static void add_pages(nvmlDevice_t device, unsigned int cause, struct smi_rows *rows)
{
    unsigned long long *addresses = NULL;
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetRetiredPages(device, cause, &count, NULL);

    if (code == NVML_ERROR_INSUFFICIENT_SIZE) {
        addresses = calloc(count, sizeof(*addresses));
        code = addresses == NULL ? NVML_ERROR_MEMORY : nvmlDeviceGetRetiredPages(device, cause, &count, addresses);
    }
    if (code != NVML_SUCCESS)
        add(rows, (struct smi_item){.code = code, .cause = cause});
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++)
        add(rows, (struct smi_item){.cause = cause, .address = addresses[i]});
    free(addresses);
}

void smi_pages(nvmlDevice_t device, struct smi_rows *rows)
{
    for (unsigned int cause = 0; cause < CAUSES; cause++)
        add_pages(device, cause, rows);
}
