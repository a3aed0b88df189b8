/* What the parts of libpublish.so share. The exported functions are called by simnode.nvml.image through ctypes. */
#ifndef SN_PUBLISH_H
#define SN_PUBLISH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>

#include "nvml/rules.h"

#define SN_EXPORT __attribute__((visibility("default")))

/* When the counters of this publish change their rules. */
struct sn_schedule {
    uint64_t now;
    uint64_t anchor;    /* 0: no counter changes its rule */
    int other_boot;     /* the active slot's anchors are ticks of another boot */
};

/* The devices of the active slot, or NULL before the first publish, and those wanted. */
struct sn_change {
    struct sn_slot *active;
    const struct sn_device *const *wanted;
    uint32_t count;
    int other_boot;
};

/* True if both are the same GPU at work: its counters go on. */
int sn_same_device(const struct sn_device *wanted, const struct sn_device *active);

/* Decides whether and when rules change, and ends the active slot's counters there. Sleeps while an older change is ahead. */
struct sn_schedule sn_plan_counters(const struct sn_change *change);

/* Fills in the counters and old_curve of `device`, a copy of the wanted one, as the successor of `active`. */
void sn_carry_counters(struct sn_device *device, const struct sn_device *active, const struct sn_schedule *schedule);

/* Makes `size` bytes equal, writing as little as possible. */
void sn_put(void *to, const void *from, size_t size);

/* Appends an event of `device` (its epoch is the active slot's) and wakes who waits. Returns the event's number, from 1. */
uint64_t sn_publish_event(struct sn_image *image, uint32_t device, uint64_t type, uint64_t data, uint32_t gpu_instance,
                          uint32_t compute_instance);

/* Tells who waits for events how many there are by now. */
void sn_announce_events(struct sn_header *header);

#endif
