/* Which processes use a device, in the layouts of three generations, and how much. */
#define _GNU_SOURCE
#include "processes.h"
#include "handles.h"
#include "mig.h"

_Static_assert(sizeof(struct sn_usage) == offsetof(struct sn_process, name), "the beginning of a process");

enum { ENGINE_SM, ENGINE_MEMORY, ENGINE_ENCODER, ENGINE_DECODER, ENGINES };

/* How busy the device is as a whole, for its processes to share. */
struct load {
    bool moves;
    uint32_t load; /* 0 to SN_FULL_LOAD */
    uint32_t percent[ENGINES];
};

static void read_load(const struct sn_read *read, struct load *load)
{
    const struct sn_device *from = read->device;
    const struct sn_gauge *const gauges[ENGINES] = {&from->utilization_gpu, &from->utilization_memory,
                                                    &from->utilization_encoder, &from->utilization_decoder};
    uint64_t now = sn_clock();

    load->moves = from->utilization_gpu.span != 0;
    load->load = load->moves ? (uint32_t)sn_load(&from->curve, now) : 0;
    for (unsigned int i = 0; i < ENGINES; i++)
        load->percent[i] =
            gauges[i]->status == NVML_SUCCESS ? (uint32_t)sn_gauge_at(gauges[i], &from->curve, now) : 0;
}

/* Copies the first `size` bytes of each process into consecutive places of that size. */
static nvmlReturn_t copy_processes(nvmlDevice_t device, unsigned int types, void *out, size_t size,
                                   unsigned int *count, struct load *load)
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
            if (load != NULL)
                read_load(&read.parent, load);
        }
    } while (sn_again(&read.parent, &code));
    return code;
}

nvmlReturn_t sn_get_processes(nvmlDevice_t device, unsigned int types, struct sn_process *out, unsigned int *count)
{
    return copy_processes(device, types, out, sizeof(*out), count, NULL);
}

static uint32_t *engine_of(struct sn_usage *process, unsigned int engine)
{
    uint32_t *const percent[ENGINES] = {&process->sm_util, &process->mem_util, &process->enc_util, &process->dec_util};

    return percent[engine];
}

/* Those that compute share the device's percentage, the first of them what is left over. */
static void share(struct sn_usage *processes, unsigned int count, unsigned int engine, uint32_t percent)
{
    unsigned int sharers = 0;

    for (unsigned int i = 0; i < count; i++)
        sharers += (processes[i].type & (SN_PROCESS_COMPUTE | SN_PROCESS_MPS)) != 0;
    for (unsigned int i = 0, given = 0; i < count; i++) {
        if (sharers != 0 && (processes[i].type & (SN_PROCESS_COMPUTE | SN_PROCESS_MPS)) == 0)
            continue;
        if (sharers == 0 && i > 0)
            return;
        *engine_of(&processes[i], engine) = sharers == 0 ? percent : percent / sharers;
        if (given++ == 0 && sharers != 0)
            *engine_of(&processes[i], engine) += percent % sharers;
    }
}

nvmlReturn_t sn_get_usage(nvmlDevice_t device, unsigned int types, struct sn_usage *out, unsigned int *count)
{
    struct load load = {0};
    nvmlReturn_t code = copy_processes(device, types, out, sizeof(*out), count, &load);

    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int engine = 0; engine < ENGINES; engine++) {
        uint64_t said = 0;
        for (unsigned int i = 0; i < *count; i++)
            said += *engine_of(&out[i], engine);
        if (said == 0)
            share(out, *count, engine, load.percent[engine]);
        for (unsigned int i = 0; said != 0 && load.moves && i < *count; i++)
            *engine_of(&out[i], engine) =
                (uint32_t)(((uint64_t)*engine_of(&out[i], engine) * load.load + SN_FULL_LOAD / 2) / SN_FULL_LOAD);
    }
    return NVML_SUCCESS;
}

/* Old callers have room for the first members of today's entry only: `size` bytes each. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int types, unsigned int *count, void *entries, size_t size)
{
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = copy_processes(device, types, processes, sizeof(processes[0]), &number, NULL);
    if (code != NVML_SUCCESS)
        return code;
    room = *count;
    *count = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (number != 0 && entries == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < number; i++) {
        const struct sn_usage *from = &processes[i];
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
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (details == NULL)
        return sn_bad_argument(device);
    if (sn_image() != NULL && details->version != SN_TAG(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (details->mode >= sizeof(types) / sizeof(types[0]))
        return sn_bad_argument(device);
    code = copy_processes(device, types[details->mode], processes, sizeof(processes[0]), &number, NULL);
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

/* One sample a process, taken now. Where there is none, or none after what the caller has seen, nothing is found. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                         unsigned int *count, unsigned long long last_seen_us)
{
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned long long now = sn_wall_clock_us();
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = sn_get_usage(device, SN_PROCESS_COMPUTE | SN_PROCESS_GRAPHICS, processes, &number);
    if (code != NVML_SUCCESS)
        return code;
    room = samples == NULL ? 0 : *count;
    if (last_seen_us >= now)
        number = 0;
    *count = number;
    if (number == 0)
        return NVML_ERROR_NOT_FOUND;
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
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned long long now = sn_wall_clock_us();
    unsigned int number = 0;
    unsigned int room;
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    if (sn_image() != NULL && info->version != SN_TAG(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    code = sn_get_usage(device, SN_PROCESS_COMPUTE | SN_PROCESS_GRAPHICS, processes, &number);
    if (code != NVML_SUCCESS)
        return code;
    room = info->procUtilArray == NULL ? 0 : info->processSamplesCount;
    if (info->lastSeenTimeStamp >= now)
        number = 0;
    info->processSamplesCount = number;
    if (number == 0)
        return NVML_ERROR_NOT_FOUND;
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
