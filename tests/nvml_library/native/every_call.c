/* Calls every function in many wrong and some right ways, for the sanitizers to watch. It is linked with the library's
 * own files. every.h has X(name, "kinds") once for each: the kinds of its parameters, n for numbers, d for devices, g and
 * c for GPU and compute instances, s for event sets, m for samples, p for pointers. Nothing lies behind the one buffer
 * that the pointers point to. The library's first init and its last shutdown are ours.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 16384
#define PARAMETERS 6
#define MOST_DEVICES 16
#define INSTANCE_IDS 16

typedef int any(void *, ...);

#define X(name, kinds) any name;
#include "every.h"
#undef X

static const struct {
    any *function;
    const char *kinds;
} every[] = {
#define X(name, kinds) {name, kinds},
#include "every.h"
#undef X
};

int nvmlInit_v2(void);
int nvmlShutdown(void);

/* What is given for the handles of each kind. */
struct handles {
    void *device;
    void *gpu_instance;
    void *compute_instance;
    void *set;
    void *sample;
};

static uintptr_t argument(char kind, const struct handles *handles, uintptr_t number, void *page)
{
    switch (kind) {
    case 'n':
        return number;
    case 'd':
        return (uintptr_t)handles->device;
    case 'g':
        return (uintptr_t)handles->gpu_instance;
    case 'c':
        return (uintptr_t)handles->compute_instance;
    case 's':
        return (uintptr_t)handles->set;
    case 'm':
        return (uintptr_t)handles->sample;
    default:
        return (uintptr_t)page;
    }
}

/* Calls one with a buffer for each pointer, but null for those whose bit is set in `nulls`. */
static void call(size_t which, const struct handles *handles, uintptr_t number, void *page, unsigned int nulls)
{
    uintptr_t values[PARAMETERS] = {0};

    for (size_t i = 0; every[which].kinds[i] != '\0'; i++)
        values[i] = argument(every[which].kinds[i], handles, number, (nulls & 1u << i) != 0 ? NULL : page);
    every[which].function((void *)values[0], values[1], values[2], values[3], values[4], values[5]);
}

static void call_one(size_t which, const struct handles *handles, uintptr_t number, void *page, unsigned int tag)
{
    const char *kinds = every[which].kinds;
    unsigned int pointers = 0;

    for (size_t i = 0; kinds[i] != '\0'; i++)
        pointers |= (unsigned int)(kinds[i] == 'p') << i;
    for (unsigned int nulls = 0; nulls <= pointers; nulls++) {
        if ((nulls & ~pointers) != 0)
            continue;
        memset(page, 0, PAGE);
        memcpy(page, &tag, sizeof(tag));
        call(which, handles, number, page, nulls);
    }
}

static void call_all(const struct handles *handles, void *page)
{
    static const unsigned int tags[] = {0,          0x0100000c, 0x01000008, 0x01000010, 0x01000018,
                                        0x01000034, 0x01000040, 0x01000054, 0x01000068, 0x0100002c,
                                        0x0200002c, 0x02000028, 0x02000024, 0x03000028};

    for (size_t f = 0; f < sizeof(every) / sizeof(every[0]); f++)
        for (size_t tag = 0; tag < sizeof(tags) / sizeof(tags[0]); tag++)
            for (uintptr_t number = 0; number < 4; number++)
                call_one(f, handles, number, page, tags[tag]);
}

/* The GPUs and their MIG devices; how many. */
static size_t find_devices(void *devices[MOST_DEVICES])
{
    unsigned int count = 0;
    size_t found = 0;

    nvmlDeviceGetCount_v2(&count);
    for (uintptr_t i = 0; i < count; i++)
        found += nvmlDeviceGetHandleByIndex_v2((void *)i, &devices[found]) == 0;
    for (size_t gpu = 0, gpus = found; gpu < gpus; gpu++)
        found += nvmlDeviceGetMigDeviceHandleByIndex(devices[gpu], (uintptr_t)0, &devices[found]) == 0;
    return found;
}

static void find_instances(struct handles *handles)
{
    for (uintptr_t id = 0; id < INSTANCE_IDS; id++)
        nvmlDeviceGetGpuInstanceById(handles->device, id, &handles->gpu_instance);
    nvmlGpuInstanceGetComputeInstanceById(handles->gpu_instance, (uintptr_t)0, &handles->compute_instance);
    nvmlEventSetCreate(&handles->set);
    nvmlGpmSampleAlloc(&handles->sample);
}

int main(void)
{
    void *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *odd = (char *)page + 1;
    struct handles none = {0};
    struct handles wrong = {odd, odd, odd, odd, odd};
    void *devices[MOST_DEVICES];
    size_t count;

    if (page == MAP_FAILED || mprotect((char *)page + PAGE, PAGE, PROT_NONE) != 0)
        return 2;
    call_all(&wrong, page);
    if (nvmlInit_v2() != 0)
        return 1;
    call_all(&none, page);
    call_all(&wrong, page);
    count = find_devices(devices);
    for (size_t i = 0; i < count; i++) {
        struct handles right = {.device = devices[i]};
        find_instances(&right);
        call_all(&right, page);
    }
    nvmlShutdown();
    puts("done");
    return 0;
}
