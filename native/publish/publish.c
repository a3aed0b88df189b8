/*
 * Writes the slot that no reader should be reading, then flips. Wait-free for readers; the publisher may be stopped or
 * killed between any two instructions. A slot is brought up to date by comparing: whatever an earlier publish, complete
 * or not, left in it, it equals what is wanted afterwards, and little is written when little changes. Only what its caller
 * vouches for is passed over.
 */
#include "publish.h"

#include <string.h>

enum { COMPARED = 512 };

_Static_assert(SN_MAX_DEVICES <= 64, "a bit for each device");

void sn_put(void *to, const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += COMPARED) {
        size_t length = size - at < COMPARED ? size - at : COMPARED;

        if (memcmp((char *)to + at, (const char *)from + at, length) != 0)
            memcpy((char *)to + at, (const char *)from + at, length);
    }
}

/* An epoch counts identities, so it must outlive the device. */
static void carry_epochs(struct sn_device *device, const struct sn_device *active)
{
    device->epoch = active->epoch + (device->present && !sn_same_device(device, active));
    for (size_t i = 0; i < SN_MAX_MIG_DEVICES; i++) {
        const struct sn_mig *was = &active->mig[i];
        struct sn_mig *mig = &device->mig[i];
        int same = was->present && memcmp(mig->uuid, was->uuid, sizeof(mig->uuid)) == 0;

        mig->epoch = was->epoch + (mig->present && !same);
    }
}

static void write_device(struct sn_device *target, const struct sn_device *wanted, const struct sn_device *active,
                         const struct sn_schedule *schedule)
{
    struct sn_device device = *wanted;

    sn_carry_counters(&device, active, schedule);
    carry_epochs(&device, active);
    sn_put(target, &device, sizeof(device));
}

static void write_absence(struct sn_device *target, const struct sn_device *active)
{
    struct sn_device device;

    if (!target->present && active->epoch == 0)
        return;
    memset(&device, 0, sizeof(device));
    carry_epochs(&device, active);
    sn_put(target, &device, sizeof(device));
}

/*
 * Makes the file an image if it is all new: 0. An image of this layout stays as it is: 0. Anything else: -1.
 */
SN_EXPORT int sn_publish_open(struct sn_image *image)
{
    struct sn_header *header = &image->header;

    if (header->magic == 0) {
        header->format = SN_FORMAT;
        header->header_bytes = sizeof(*header);
        header->slot_bytes = sizeof(struct sn_slot);
        header->image_bytes = sizeof(*image);
        __atomic_store_n(&header->magic, SN_MAGIC, __ATOMIC_RELEASE);
    }
    if (header->magic != SN_MAGIC || header->format != SN_FORMAT || header->header_bytes != sizeof(*header) ||
        header->slot_bytes != sizeof(struct sn_slot) || header->image_bytes != sizeof(*image))
        return -1;
    sn_announce_events(header);
    return 0;
}

/*
 * Publishes `wanted` and as many devices as it says; `boot_id` is the kernel's. A device whose bit is set in `settled` was
 * published just so the last two times, by this process: both slots hold it. Returns the publish's number.
 * Sleeps at most 3 ticks, and only if a counter changes its rule twice within 2 of them.
 */
SN_EXPORT uint64_t sn_publish(struct sn_image *image, const struct sn_node *wanted, const struct sn_device *const device[],
                              uint64_t settled, const char *boot_id)
{
    uint64_t done = sn_done(image);
    struct sn_slot *active = &image->slot[done & 1];
    struct sn_slot *target = &image->slot[(done + 1) & 1];
    struct sn_node node = *wanted;
    struct sn_change change = {done ? active : NULL, device, node.device_count, 0};
    struct sn_schedule schedule;

    strncpy(node.boot_id, boot_id, sizeof(node.boot_id) - 1);
    change.other_boot = done != 0 && strncmp(active->node.boot_id, node.boot_id, sizeof(node.boot_id)) != 0;
    schedule = sn_plan_counters(&change);

    __atomic_store_n(&image->header.begin, done + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (uint32_t i = 0; i < node.device_count; i++)
        if (!(settled >> i & 1))
            write_device(&target->device[i], device[i], &active->device[i], &schedule);
    for (uint32_t i = node.device_count; i < SN_MAX_DEVICES; i++)
        write_absence(&target->device[i], &active->device[i]);
    sn_put(&target->node, &node, sizeof(node));
    __atomic_store_n(&image->header.done, done + 1, __ATOMIC_RELEASE);
    return done + 1;
}
