/*
 * An image that always says what another one says: for a place that the first one's file cannot be in. It has its own
 * numbers of publishes and events, so it may begin, and be left out for a while, at any time.
 *
 * The successor of a slot's counters is planned TICKS_AHEAD ticks before it begins; copied within that time, counters never
 * fall for whoever reads the one image and then the other.
 */
#include "publish.h"

#include <string.h>

static void copy_slot(struct sn_slot *target, const struct sn_slot *from)
{
    for (uint32_t i = 0; i < SN_MAX_DEVICES; i++)
        if (from->device[i].present || from->device[i].epoch || target->device[i].present)
            sn_put(&target->device[i], &from->device[i], sizeof(from->device[i]));
    sn_put(&target->node, &from->node, sizeof(from->node));
}

/* If it follows on what the active slot is a copy of, that one's counters end where their original's do. */
static void publish_slot(struct sn_image *image, const struct sn_image *from, uint64_t latest, int follows)
{
    uint64_t done = sn_done(image);
    uint64_t until = sn_slot_of(from, latest - 1)->node.counters_until;

    if (follows)
        __atomic_store_n(&image->slot[done & 1].node.counters_until, until, __ATOMIC_RELAXED);
    __atomic_store_n(&image->header.begin, done + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    copy_slot(&image->slot[(done + 1) & 1], sn_slot_of(from, latest));
    __atomic_store_n(&image->header.done, done + 1, __ATOMIC_RELEASE);
}

/*
 * Publishes in `image` what `from` published last, unless that is publish `copied`, which it has already. Then appends the
 * events of `from` whose numbers are above `heard`. No publish of either may run meanwhile.
 */
SN_EXPORT void sn_publish_copy(struct sn_image *image, const struct sn_image *from, uint64_t copied, uint64_t heard)
{
    uint64_t latest = sn_done(from);
    uint64_t total = from->header.event_total;

    if (latest != copied)
        publish_slot(image, from, latest, latest == copied + 1);
    for (uint64_t number = heard + 1; heard <= total && number <= total; number++) {
        const struct sn_event *event = &from->event[sn_event_index(number)];

        if (event->sequence == number)
            sn_publish_event(image, event->device, event->type, event->data, event->gpu_instance,
                             event->compute_instance);
    }
}
