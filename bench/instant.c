/* An NVML library in which every call takes no time: eight GPUs that the default view of nvidia-smi shows whole, from
   constants. What nvidia-smi takes with it is nvidia-smi's own. Not a simulator: nothing but `make bench` uses it. */
#include <stddef.h>
#include <string.h>

enum { GPUS = 8, SLOTS = 512, NOT_SUPPORTED = 3, FIRST_LIST = 213, LAST_LIST = 215 };

static char devices[GPUS];

static int index_of(const void *device)
{
    return (int)((const char *)device - devices);
}

int nvmlInitWithFlags(unsigned int flags)
{
    return flags == 0 ? 0 : 2;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlEventSetCreate(void **set)
{
    *set = devices;
    return 0;
}

int nvmlEventSetFree(void *set)
{
    return set == devices ? 0 : 2;
}

static int text(char *out, const char *value)
{
    strcpy(out, value);
    return 0;
}

int nvmlSystemGetDriverVersion(char *out)
{
    return text(out, "550.163.01");
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 12040;
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = GPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    if (index >= GPUS)
        return 2;
    *device = &devices[index];
    return 0;
}

int nvmlDeviceGetIndex(const void *device, unsigned int *index)
{
    *index = (unsigned int)index_of(device);
    return 0;
}

int nvmlDeviceGetName(const void *device, char *out)
{
    (void)device;
    return text(out, "NVIDIA H100 80GB HBM3");
}

int nvmlDeviceGetPciInfo_v3(const void *device, char *info)
{
    memset(info, 0, 68);
    strcpy(info + 36, "00000000:53:00.0"); /* busId, after the legacy text and five words */
    info[43] = (char)('0' + index_of(device));
    return 0;
}

static int word(unsigned int *out, unsigned int value)
{
    *out = value;
    return 0;
}

int nvmlDeviceGetPersistenceMode(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 1);
}

int nvmlDeviceGetDisplayActive(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 0);
}

int nvmlDeviceGetTemperature(const void *device, int sensor, unsigned int *out)
{
    (void)device, (void)sensor;
    return word(out, 30);
}

int nvmlDeviceGetPerformanceState(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 0);
}

int nvmlDeviceGetPowerUsage(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 70000);
}

int nvmlDeviceGetEnforcedPowerLimit(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 700000);
}

int nvmlDeviceGetMemoryInfo_v2(const void *device, unsigned long long *info)
{
    (void)device;
    info[1] = info[3] = 85520809984; /* after the tag: total, reserved, free, used */
    info[2] = info[4] = 0;
    return 0;
}

int nvmlDeviceGetUtilizationRates(const void *device, unsigned int *rates)
{
    (void)device;
    rates[0] = rates[1] = 0;
    return 0;
}

int nvmlDeviceGetComputeMode(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 0);
}

int nvmlDeviceGetMaxMigDeviceCount(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 0);
}

int nvmlDeviceIsMigDeviceHandle(const void *device, unsigned int *out)
{
    (void)device;
    return word(out, 0);
}

static int no_process(const void *device, unsigned int *count)
{
    (void)device;
    return word(count, 0);
}

static int refuse(void)
{
    return NOT_SUPPORTED;
}

int nvmlInternalGetExportTable(const void **out, const unsigned char *guid)
{
    static void *table[SLOTS];

    (void)guid;
    table[0] = (void *)sizeof(table);
    for (int slot = 1; slot < SLOTS; slot++)
        table[slot] = slot >= FIRST_LIST && slot <= LAST_LIST ? (void *)no_process : (void *)refuse;
    *out = table;
    return 0;
}
