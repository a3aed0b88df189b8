/* The table of processes: by GPU and pid, a partitioned GPU's by its MIG devices. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nvml/processes.h"
#include "row.h"
#include "smi.h"

#define LONGEST_NAME 38u
#define UNKNOWN_BYTES UINT64_MAX

/* The letters tell which lists a process is in; a client of MPS is in that of compute processes, too. */
static const char *type_text(unsigned int types)
{
    bool graphics = (types & SN_PROCESS_GRAPHICS) != 0;

    if ((types & SN_PROCESS_MPS) != 0)
        return graphics ? "M+C+G" : "M+C";
    if ((types & SN_PROCESS_COMPUTE) != 0)
        return graphics ? "C+G" : "C";
    return "G";
}

static void put_instance(struct row *row, unsigned int at, uint32_t id)
{
    if (id == SN_NO_INSTANCE)
        row_put(row, at, 3, "N/A");
    else
        row_format(row, at, 3, "%2u", id);
}

/* A process that has no name is passed over. */
static void print_process(unsigned int gpu, const struct sn_process *process, unsigned int type)
{
    char name[sizeof(process->name) + 1];
    size_t length = strnlen(process->name, sizeof(process->name));
    struct row row;

    if (length == 0)
        return;
    memcpy(name, process->name, length);
    name[length] = '\0';
    row_start(&row, "|                                                                                         |");
    row_format(&row, 3, 3, "%3d", (int)gpu);
    put_instance(&row, 9, process->gpu_instance);
    put_instance(&row, 14, process->compute_instance);
    row_format(&row, 19, 8, "%8d", (int)process->pid);
    row_format(&row, 29, 5, "%5s", type_text(type));
    if (length > LONGEST_NAME)
        row_format(&row, 37, LONGEST_NAME, "...%s", name + length - (LONGEST_NAME - 3));
    else
        row_put(&row, 37, LONGEST_NAME, name);
    if (process->used_bytes == UNKNOWN_BYTES)
        row_put(&row, 81, 8, "N/A");
    else
        row_format(&row, 81, 8, "%5lluMiB", (unsigned long long)process->used_bytes / SMI_MIB);
    row_print(&row);
}

/* Processes of one kind on a device, by pid; those with one pid in the order of the image. */
struct list {
    struct sn_process process[SN_MAX_PROCESSES];
    const struct sn_process *order[SN_MAX_PROCESSES];
    unsigned int count;
    unsigned int next;
};

static int by_pid(const void *left, const void *right)
{
    const struct sn_process *a = *(const struct sn_process *const *)left;
    const struct sn_process *b = *(const struct sn_process *const *)right;

    if (a->pid != b->pid)
        return (a->pid > b->pid) - (a->pid < b->pid);
    return (a > b) - (a < b);
}

static bool read_list(struct list *list, nvmlDevice_t device, unsigned int types)
{
    list->next = 0;
    list->count = 0;
    if (sn_get_processes(device, types, list->process, &list->count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < list->count; i++)
        list->order[i] = &list->process[i];
    qsort(list->order, list->count, sizeof(list->order[0]), by_pid);
    return true;
}

/* The process at the head of a list, or null. */
static const struct sn_process *head(const struct list *list)
{
    return list->next == list->count ? NULL : list->order[list->next];
}

static bool has_pid(const struct list *list, uint32_t pid)
{
    for (unsigned int i = 0; i < list->count; i++)
        if (list->process[i].pid == pid)
            return true;
    return false;
}

/* A pid in both lists makes one line, which tells what the list of compute processes knows. How many there are. */
static unsigned int print_processes(unsigned int gpu, nvmlDevice_t device)
{
    struct list compute;
    struct list graphics;
    struct list mps;
    unsigned int count = 0;

    if (!read_list(&compute, device, SN_PROCESS_COMPUTE | SN_PROCESS_MPS) ||
        !read_list(&graphics, device, SN_PROCESS_GRAPHICS) || !read_list(&mps, device, SN_PROCESS_MPS))
        return 0;
    for (;;) {
        const struct sn_process *computing = head(&compute);
        const struct sn_process *drawing = head(&graphics);
        const struct sn_process *first = computing;
        unsigned int types = 0;
        if (first == NULL || (drawing != NULL && drawing->pid < first->pid))
            first = drawing;
        if (first == NULL)
            return count;
        if (computing != NULL && computing->pid == first->pid) {
            types |= SN_PROCESS_COMPUTE;
            compute.next++;
        }
        if (drawing != NULL && drawing->pid == first->pid) {
            types |= SN_PROCESS_GRAPHICS;
            graphics.next++;
        }
        if (has_pid(&mps, first->pid))
            types |= SN_PROCESS_MPS;
        print_process(gpu, first, types);
        count++;
    }
}

/* Adds how many there are to *count. An error: the device has no index, and nothing of it was printed. */
static nvmlReturn_t print_of_device(nvmlDevice_t device, unsigned int *count)
{
    unsigned int found = 0;
    unsigned int most = 0;
    unsigned int gpu;
    nvmlReturn_t code = nvmlDeviceGetIndex(device, &gpu);

    if (code != NVML_SUCCESS)
        return code;
    if (nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
        most = 0;
    for (unsigned int i = 0; i < most; i++) {
        nvmlDevice_t mig;
        if (nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != NVML_SUCCESS)
            continue;
        found++;
        *count += print_processes(gpu, mig);
    }
    if (found == 0)
        *count += print_processes(gpu, device);
    return NVML_SUCCESS;
}

nvmlReturn_t smi_process_table(const struct smi_devices *devices)
{
    unsigned int count = 0;

    puts("                                                                                         ");
    puts("+-----------------------------------------------------------------------------------------+");
    puts("| Processes:                                                                              |");
    puts("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |");
    puts("|        ID   ID                                                               Usage      |");
    puts("|=========================================================================================|");
    for (unsigned int i = 0; i < devices->count; i++) {
        nvmlReturn_t code = print_of_device(devices->handle[i], &count);
        if (code != NVML_SUCCESS)
            return code;
    }
    if (count == 0)
        puts("|  No running processes found                                                             |");
    puts("+-----------------------------------------------------------------------------------------+");
    return NVML_SUCCESS;
}
