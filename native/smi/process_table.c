/* The table of processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "processes.h"
#include "row.h"
#include "smi.h"

#define LONGEST_NAME 38u

static void put_instance(struct row *row, unsigned int at, uint32_t id)
{
    if (id == SN_NO_INSTANCE)
        row_put(row, at, 3, "N/A");
    else
        row_format(row, at, 3, "%2u", id);
}

/* Where the name begins and how long it is without the blanks around it. */
static const char *trim(const char *name, size_t *length)
{
    name += strspn(name, " ");
    *length = strlen(name);
    while (*length != 0 && name[*length - 1] == ' ')
        --*length;
    return name;
}

/* A process that has no name is passed over. */
static void print_process(void *context, const struct sn_process *process, unsigned int types)
{
    const unsigned int *gpu = context;
    char own[SMI_OWN_NAME_BYTES];
    const char *name;
    size_t length;
    struct row row;

    smi_process_name(process, own);
    name = trim(own, &length);
    if (length == 0)
        return;
    row_start(&row, "|                                                                                         |");
    row_format(&row, 3, 3, "%3d", (int)*gpu);
    put_instance(&row, 9, process->gpu_instance);
    put_instance(&row, 14, process->compute_instance);
    row_format(&row, 19, 8, "%8d", (int)process->pid);
    row_format(&row, 29, 5, "%5s", smi_process_type(types));
    if (length > LONGEST_NAME)
        row_format(&row, 37, LONGEST_NAME, "...%.*s", (int)LONGEST_NAME - 3, name + length - (LONGEST_NAME - 3));
    else
        row_format(&row, 37, LONGEST_NAME, "%.*s", (int)length, name);
    if (process->used_bytes == SMI_UNKNOWN_BYTES)
        row_put(&row, 81, 8, "N/A");
    else
        row_format(&row, 81, 8, "%5lluMiB", (unsigned long long)process->used_bytes / SMI_MIB);
    row_print(&row);
}

nvmlReturn_t smi_process_table(const struct smi_devices *devices)
{
    nvmlReturn_t worst = NVML_SUCCESS;
    unsigned int count = 0;

    puts("                                                                                         ");
    puts("+-----------------------------------------------------------------------------------------+");
    puts("| Processes:                                                                              |");
    puts("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |");
    puts("|        ID   ID                                                               Usage      |");
    puts("|=========================================================================================|");
    for (unsigned int i = 0; i < devices->count; i++) {
        unsigned int gpu;
        nvmlReturn_t code = nvmlDeviceGetIndex(devices->handle[i], &gpu);
        if (code == NVML_SUCCESS)
            count += smi_each_process(devices->handle[i], print_process, &gpu);
        else
            worst = code;
    }
    if (count == 0)
        puts("|  No running processes found                                                             |");
    puts("+-----------------------------------------------------------------------------------------+");
    return worst;
}
