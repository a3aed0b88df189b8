/*
 * The event ring: readers keep a cursor, take what lies between it and event_total, and drop what was overwritten
 * meanwhile. A publisher that dies in the middle leaves an entry that nobody counts; the next event takes its place.
 */
#include "publish.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void sn_announce_events(struct sn_header *header)
{
    __atomic_store_n(&header->event_sequence, (uint32_t)header->event_total, __ATOMIC_RELEASE);
    syscall(SYS_futex, &header->event_sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

SN_EXPORT uint64_t sn_publish_event(struct sn_image *image, uint32_t device, uint64_t type, uint64_t data,
                                    uint32_t gpu_instance, uint32_t compute_instance)
{
    struct sn_header *header = &image->header;
    uint64_t sequence = header->event_total + 1;
    struct sn_event *event = &image->event[sn_event_index(sequence)];

    __atomic_store_n(&event->sequence, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    event->type = type;
    event->data = data;
    event->device = device;
    event->epoch = sn_slot_of(image, sn_done(image))->device[device].epoch;
    event->gpu_instance = gpu_instance;
    event->compute_instance = compute_instance;
    __atomic_store_n(&event->sequence, sequence, __ATOMIC_RELEASE);
    __atomic_store_n(&header->event_total, sequence, __ATOMIC_RELEASE);
    sn_announce_events(header);
    return sequence;
}
