/* Which processes use a device, in the layouts of three generations, and how much. */
#define _GNU_SOURCE
#include "processes.h"
#include "handles.h"
#include "mig.h"

/* A process without its name, which is all but a few bytes of it: lists have to fit on small stacks. */
struct usage {
    uint32_t pid;
    uint32_t type;
    uint64_t used_bytes;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t sm_util;
    uint32_t mem_util;
    uint32_t enc_util;
    uint32_t dec_util;
};
_Static_assert(sizeof(struct usage) == offsetof(struct sn_process, name), "the beginning of a process");

/* Copies the first `size` bytes of each process into consecutive places of that size. */
static nvmlReturn_t copy_processes(nvmlDevice_t device, unsigned int types, void *out, size_t size, unsigned int *count)
{
    struct sn_mig_read read;
    bool mig = sn_is_mig_handle(device);
    nvmlReturn_t code = mig ? sn_mig_open(&read, device) : sn_open(&read.parent, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        *count = 0;
        code = mig ? sn_mig_look(&read) : sn_look(&read.parent);
        if (code == NVML_SUCCESS) {
            const struct sn_device *from = read.parent.device;
            unsigned int number = from->process_count;
            for (unsigned int i = 0; i < number && i < SN_MAX_PROCESSES; i++) {
                const struct sn_process *process = &from->process[i];
                if ((process->type & types) == 0)
                    continue;
                if (mig && (process->gpu_instance != read.mig->gpu_instance ||
                            process->compute_instance != read.mig->compute_instance))
                    continue;
                memcpy((char *)out + *count * size, process, size);
                ++*count;
            }
        }
    } while (sn_again(&read.parent, &code));
    return code;
}

nvmlReturn_t sn_get_processes(nvmlDevice_t device, unsigned int types, struct sn_process *out, unsigned int *count)
{
    return copy_processes(device, types, out, sizeof(*out), count);
}

/* Old callers have room for the first members of today's entry only: `size` bytes each. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int types, unsigned int *count, void *entries, size_t size)
{
    struct usage processes[SN_MAX_PROCESSES];
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = copy_processes(device, types, processes, sizeof(processes[0]), &number);
    if (code != NVML_SUCCESS)
        return code;
    room = *count;
    *count = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (number != 0 && entries == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < number; i++) {
        const struct usage *from = &processes[i];
        nvmlProcessInfo_v2_t entry = {from->pid, from->used_bytes, from->gpu_instance, from->compute_instance};
        memcpy((char *)entries + i * size, &entry, size);
    }
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                              nvmlProcessInfo_v1_t *entries)
{
    return list(device, SN_PROCESS_COMPUTE, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                                 nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_COMPUTE, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                                 nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_COMPUTE, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                               nvmlProcessInfo_v1_t *entries)
{
    return list(device, SN_PROCESS_GRAPHICS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                                  nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_GRAPHICS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                                  nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_GRAPHICS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                                 nvmlProcessInfo_v1_t *entries)
{
    return list(device, SN_PROCESS_MPS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                                    nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_MPS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                                    nvmlProcessInfo_v2_t *entries)
{
    return list(device, SN_PROCESS_MPS, count, entries, sizeof(*entries));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t *details)
{
    static const unsigned int types[] = {SN_PROCESS_COMPUTE, SN_PROCESS_GRAPHICS, SN_PROCESS_MPS};
    struct usage processes[SN_MAX_PROCESSES];
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (details == NULL)
        return sn_bad_argument(device);
    if (sn_image() != NULL && details->version != SN_TAG(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (details->mode >= sizeof(types) / sizeof(types[0]))
        return sn_bad_argument(device);
    code = copy_processes(device, types[details->mode], processes, sizeof(processes[0]), &number);
    if (code != NVML_SUCCESS)
        return code;
    room = details->procArray == NULL ? 0 : details->numProcArrayEntries;
    details->numProcArrayEntries = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < number; i++)
        details->procArray[i] = (nvmlProcessDetail_v1_t){processes[i].pid, processes[i].used_bytes,
                                                         processes[i].gpu_instance, processes[i].compute_instance, 0};
    return NVML_SUCCESS;
}

/* One sample a process, taken now: a caller that asks for what came later than the future is told there is none. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                         unsigned int *count, unsigned long long last_seen_us)
{
    struct usage processes[SN_MAX_PROCESSES];
    unsigned long long now = sn_wall_clock_us();
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = copy_processes(device, SN_PROCESS_COMPUTE | SN_PROCESS_GRAPHICS, processes, sizeof(processes[0]), &number);
    if (code != NVML_SUCCESS)
        return code;
    room = samples == NULL ? 0 : *count;
    if (last_seen_us >= now)
        number = 0;
    *count = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < number; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){processes[i].pid,      now,
                                                      processes[i].sm_util,  processes[i].mem_util,
                                                      processes[i].enc_util, processes[i].dec_util};
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                               nvmlProcessesUtilizationInfo_v1_t *info)
{
    struct usage processes[SN_MAX_PROCESSES];
    unsigned long long now = sn_wall_clock_us();
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    if (sn_image() != NULL && info->version != SN_TAG(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    code = copy_processes(device, SN_PROCESS_COMPUTE | SN_PROCESS_GRAPHICS, processes, sizeof(processes[0]), &number);
    if (code != NVML_SUCCESS)
        return code;
    room = info->procUtilArray == NULL ? 0 : info->processSamplesCount;
    info->processSamplesCount = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < number; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = now,
            .pid = processes[i].pid,
            .smUtil = processes[i].sm_util,
            .memUtil = processes[i].mem_util,
            .encUtil = processes[i].enc_util,
            .decUtil = processes[i].dec_util,
        };
    return NVML_SUCCESS;
}

/* Copies the name of a device's process; false if it has none of that pid. */
static bool copy_name(nvmlDevice_t device, unsigned int pid, char name[sizeof(((struct sn_process *)0)->name)])
{
    struct sn_read read;
    bool found;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return false;
    do {
        found = false;
        code = sn_look(&read);
        for (unsigned int i = 0; code == NVML_SUCCESS && i < read.device->process_count && i < SN_MAX_PROCESSES; i++) {
            if (read.device->process[i].pid != pid)
                continue;
            memcpy(name, read.device->process[i].name, sizeof(read.device->process[i].name));
            found = true;
            break;
        }
    } while (sn_again(&read, &code));
    return found && code == NVML_SUCCESS;
}

/* Any process of a visible device; a name that does not fit is cut. */
NVML_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char copy[sizeof(((struct sn_process *)0)->name)];

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        if (copy_name(sn_handle(sn_view.device[visible]), pid, copy)) {
            size_t size = strnlen(copy, sizeof(copy));
            size = size < length ? size : length - 1;
            memcpy(name, copy, size);
            name[size] = '\0';
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}
