/* The processes of a device from its three lists: a pid that is in several is shown once. */
#define _GNU_SOURCE
#include "processes.h"

#include <stdlib.h>
#include <string.h>

#include "smi.h"

const char *smi_process_type(unsigned int types)
{
    bool graphics = (types & SN_PROCESS_GRAPHICS) != 0;

    if ((types & SN_PROCESS_MPS) != 0)
        return graphics ? "M+C+G" : "M+C";
    if ((types & SN_PROCESS_COMPUTE) != 0)
        return graphics ? "C+G" : "C";
    return "G";
}

void smi_process_name(const struct sn_process *process, char out[SMI_OWN_NAME_BYTES])
{
    size_t length = strnlen(process->name, sizeof(process->name));

    memcpy(out, process->name, length);
    out[length] = '\0';
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

/* A pid in both lists counts once, and what the list of compute processes knows of it is told. */
static unsigned int each_of_handle(nvmlDevice_t device, smi_process_fn *each, void *context)
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
        each(context, first, types);
        count++;
    }
}

unsigned int smi_each_process(nvmlDevice_t device, smi_process_fn *each, void *context)
{
    unsigned int found = 0;
    unsigned int count = 0;
    unsigned int most = 0;

    if (nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
        most = 0;
    for (unsigned int i = 0; i < most; i++) {
        nvmlDevice_t mig;
        if (nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != NVML_SUCCESS)
            continue;
        found++;
        count += each_of_handle(mig, each, context);
    }
    return found == 0 ? each_of_handle(device, each, context) : count;
}
