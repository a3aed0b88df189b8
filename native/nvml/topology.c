/* How near devices are to each other, to CPUs and to memory. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "access.h"

enum { SCOPE_NODE, SCOPE_SOCKET };

/* Both devices must live. */
static nvmlReturn_t towards(nvmlDevice_t device, nvmlDevice_t other, uint8_t *ancestor, uint8_t *p2p, bool *same)
{
    struct sn_read read;
    struct sn_read second;
    nvmlReturn_t code = sn_open(&second, other);

    if (code == NVML_SUCCESS)
        code = sn_open(&read, device);
    if (code != NVML_SUCCESS)
        return code;
    code = sn_refuse_device(other);
    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            *ancestor = read.device->ancestor[second.index];
            *p2p = read.device->p2p[second.index];
        }
    } while (sn_again(&read, &code));
    *same = read.index == second.index;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                             unsigned int *level)
{
    uint8_t ancestor = 0;
    uint8_t p2p;
    bool same;
    nvmlReturn_t code;

    if (level == NULL)
        return sn_bad_argument(device1);
    code = towards(device1, device2, &ancestor, &p2p, &same);
    if (code == NVML_SUCCESS)
        *level = same ? NVML_TOPOLOGY_INTERNAL : ancestor;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, unsigned int capability,
                                                unsigned int *status)
{
    uint8_t ancestor;
    uint8_t p2p = 0;
    bool same;
    nvmlReturn_t code;

    if (capability >= NVML_P2P_CAPS_INDEX_UNKNOWN || status == NULL)
        return sn_bad_argument(device1);
    code = towards(device1, device2, &ancestor, &p2p, &same);
    if (code == NVML_SUCCESS)
        *status = same ? NVML_P2P_STATUS_OK : p2p;
    return code;
}

/* The two-pass contract of the header: *count 0 asks for the number. */
static nvmlReturn_t give(const nvmlDevice_t *found, unsigned int number, unsigned int *count, nvmlDevice_t *devices)
{
    unsigned int room = *count;

    *count = number;
    if (room == 0)
        return NVML_SUCCESS;
    if (devices == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (number != 0)
        memcpy(devices, found, number * sizeof(*found));
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, unsigned int level, unsigned int *count,
                                                          nvmlDevice_t *devices)
{
    nvmlDevice_t found[SN_MAX_DEVICES];
    unsigned int number = 0;
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (count == NULL || level > NVML_TOPOLOGY_SYSTEM)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        nvmlDevice_t other = sn_handle(sn_view.device[visible]);
        unsigned int between;
        if (other != device && nvmlDeviceGetTopologyCommonAncestor(device, other, &between) == NVML_SUCCESS &&
            between == level)
            found[number++] = other;
    }
    return give(found, number, count, devices);
}

/* Copies `words` words of a mask, all of them: callers do not clear their buffers. No bit at all: not supported. */
static nvmlReturn_t copy_mask(nvmlDevice_t device, size_t at, unsigned int capacity, unsigned int words,
                              unsigned long *out)
{
    struct sn_read read;
    uint64_t mask[SN_CPU_WORDS] = {0};
    uint64_t any = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (words == 0 || out == NULL)
        return sn_bad_argument(device);
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS)
            memcpy(mask, sn_cell(&read, at), capacity * sizeof(mask[0]));
    } while (sn_again(&read, &code));
    for (unsigned int i = 0; i < capacity; i++)
        any |= mask[i];
    if (code != NVML_SUCCESS)
        return code;
    if (any == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned int i = 0; i < words; i++)
        out[i] = i < capacity ? (unsigned long)mask[i] : 0;
    return NVML_SUCCESS;
}
_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "a mask's word is a long");

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus)
{
    return copy_mask(device, offsetof(struct sn_device, cpu_affinity), SN_CPU_WORDS, words, cpus);
}

/* The calling thread goes to those of the device's CPUs that the machine has. Where it has none of them the thread
 * stays where it is: the node's CPUs are simulated, and no reason to fail. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device)
{
    unsigned long cpus[SN_CPU_WORDS];
    nvmlReturn_t code = nvmlDeviceGetCpuAffinity(device, SN_CPU_WORDS, cpus);

    if (code == NVML_SUCCESS)
        syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus);
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device)
{
    unsigned long cpus[SN_CPU_WORDS];
    nvmlReturn_t code = nvmlDeviceGetCpuAffinity(device, SN_CPU_WORDS, cpus);

    memset(cpus, 0xff, sizeof(cpus));
    if (code == NVML_SUCCESS)
        syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus);
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words,
                                                             unsigned long *cpus, unsigned int scope)
{
    return scope > SCOPE_SOCKET ? sn_bad_argument(device) : nvmlDeviceGetCpuAffinity(device, words, cpus);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                                     unsigned int scope)
{
    if (scope > SCOPE_SOCKET)
        return sn_bad_argument(device);
    return copy_mask(device, offsetof(struct sn_device, memory_affinity),
                     sizeof(((struct sn_device *)0)->memory_affinity) / sizeof(uint64_t), words, nodes);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count, nvmlDevice_t *devices)
{
    nvmlDevice_t found[SN_MAX_DEVICES];
    unsigned int number = 0;

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (count == NULL || cpu >= SN_CPU_WORDS * 64)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        unsigned long cpus[SN_CPU_WORDS];
        nvmlDevice_t device = sn_handle(sn_view.device[visible]);
        if (nvmlDeviceGetCpuAffinity(device, SN_CPU_WORDS, cpus) == NVML_SUCCESS &&
            (cpus[cpu / 64] >> (cpu % 64) & 1) != 0)
            found[number++] = device;
    }
    return give(found, number, count, devices);
}
