/* Event sets: what is registered, how far a set has read in the ring, and a wait that is neither busy nor early.
 *
 * A wait sleeps on a futex in the read-only mapping, which the publisher wakes. Sets are static, like handles: a stale
 * or invented pointer is recognised, never followed. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "access.h"
#include "deadline.h"
#include "events.h"
#include "handles.h"

#define MAX_SETS 256

/* ECC errors, performance state, XID, clock and MIG changes: what data-centre boards register on every driver. */
#define SUPPORTED_TYPES (0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x100)

struct nvmlEventSet_st {
    uint64_t cursor; /* number of the last event that this set has passed */
    uint64_t types[SN_MAX_DEVICES];
    uint64_t since[SN_MAX_DEVICES]; /* the newest event when the device was registered: older ones do not count */
};

static struct nvmlEventSet_st sets[MAX_SETS];
/* Which of them callers have; apart from them, for whoever looks at all would bring all their memory into being. */
static uint32_t used[MAX_SETS];

static bool is_set(nvmlEventSet_t set)
{
    uintptr_t at = (uintptr_t)set - (uintptr_t)sets;

    return at < sizeof(sets) && at % sizeof(sets[0]) == 0 &&
           __atomic_load_n(&used[at / sizeof(sets[0])], __ATOMIC_ACQUIRE) != 0;
}

static uint64_t newest(const struct sn_image *image)
{
    return __atomic_load_n(&image->header.event_total, __ATOMIC_ACQUIRE);
}

void sn_free_event_sets(void)
{
    for (unsigned int i = 0; i < MAX_SETS; i++)
        __atomic_store_n(&used[i], 0, __ATOMIC_RELEASE);
}

NVML_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    const struct sn_image *image = sn_image();

    if (image == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (set == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < MAX_SETS; i++) {
        uint32_t free = 0;
        if (!__atomic_compare_exchange_n(&used[i], &free, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        memset(sets[i].types, 0, sizeof(sets[i].types));
        __atomic_store_n(&sets[i].cursor, newest(image), __ATOMIC_RELEASE);
        *set = &sets[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_MEMORY;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_set(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    __atomic_store_n(&used[set - sets], 0, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    nvmlReturn_t code = types == NULL ? sn_bad_argument(device) : sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *types = SUPPORTED_TYPES;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    code = sn_refuse_device(device);
    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (!is_set(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    if ((types & ~(unsigned long long)SUPPORTED_TYPES) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (__atomic_load_n(&set->types[read.index], __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&set->since[read.index], newest(read.image), __ATOMIC_RELEASE);
    __atomic_fetch_or(&set->types[read.index], types, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

/* Copies event `number`; false if the ring has gone round meanwhile. */
static bool copy_event(const struct sn_image *image, uint64_t number, struct sn_event *event)
{
    const struct sn_event *entry = &image->event[sn_event_index(number)];

    if (__atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE) != number)
        return false;
    *event = *entry;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&entry->sequence, __ATOMIC_RELAXED) == number;
}

static bool wanted(nvmlEventSet_t set, const struct sn_event *event)
{
    unsigned int index = event->device;

    return index < SN_MAX_DEVICES && sn_view.visible[index] != SN_NO_DEVICE &&
           event->epoch % SN_EPOCHS == sn_view.epoch[index] % SN_EPOCHS &&
           (__atomic_load_n(&set->types[index], __ATOMIC_ACQUIRE) & event->type) != 0 &&
           event->sequence > __atomic_load_n(&set->since[index], __ATOMIC_ACQUIRE);
}

/* Takes the next wanted event; each goes to one of the threads that wait on the set. What the ring lost is skipped. */
static bool take(const struct sn_image *image, nvmlEventSet_t set, struct sn_event *event)
{
    uint64_t cursor = __atomic_load_n(&set->cursor, __ATOMIC_ACQUIRE);
    uint64_t total = newest(image);

    while (cursor < total) {
        uint64_t number = total - cursor > SN_MAX_EVENTS ? total - SN_MAX_EVENTS + 1 : cursor + 1;
        bool good = copy_event(image, number, event) && wanted(set, event);
        if (!__atomic_compare_exchange_n(&set->cursor, &cursor, number, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        if (good)
            return true;
        cursor = number;
        total = newest(image);
    }
    return false;
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, unsigned int timeout_ms, nvmlEventData_t *data)
{
    const struct sn_image *image = sn_image();
    struct timespec deadline;
    struct sn_event event;

    if (image == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_set(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    deadline = sn_deadline_after(timeout_ms);
    for (;;) {
        uint32_t sequence = __atomic_load_n(&image->header.event_sequence, __ATOMIC_ACQUIRE);
        if (take(image, set, &event))
            break;
        if (timeout_ms == 0 || sn_is_past(&deadline))
            return NVML_ERROR_TIMEOUT;
        if (syscall(SYS_futex, &image->header.event_sequence, FUTEX_WAIT_BITSET, sequence, &deadline, NULL,
                    FUTEX_BITSET_MATCH_ANY) != 0 &&
            errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
            return NVML_ERROR_UNKNOWN;
        if (sn_image() == NULL)
            return NVML_ERROR_UNINITIALIZED;
    }
    *data = (nvmlEventData_t){
        .device = sn_handle(event.device),
        .eventType = event.type,
        .eventData = event.data,
        .gpuInstanceId = event.gpu_instance,
        .computeInstanceId = event.compute_instance,
    };
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    nvmlEventData_t event;
    nvmlReturn_t code;

    if (data == NULL)
        return sn_image() == NULL ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_INVALID_ARGUMENT;
    code = wait_for(set, timeout_ms, &event);
    if (code == NVML_SUCCESS)
        *data = event;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, sn_event_data_v1 *data, unsigned int timeout_ms)
{
    nvmlEventData_t event;
    nvmlReturn_t code = nvmlEventSetWait_v2(set, data == NULL ? NULL : &event, timeout_ms);

    if (code == NVML_SUCCESS)
        *data = (sn_event_data_v1){event.device, event.eventType, event.eventData};
    return code;
}
