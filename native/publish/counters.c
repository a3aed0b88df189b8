/*
 * Counters never fall, for any reader, whatever changes and wherever the publisher is killed.
 *
 * A counter that gets another rule keeps the old one up to a tick ahead, its anchor. The active slot is told first, in
 * counters_until, that its counters end there; only then is the clock read again: if it has not reached the anchor by
 * now, no reader that found counters_until unset can have read past it. From there on the publish may be late, or never
 * happen: readers of the active slot stop at the anchor, those of the new slot start from it.
 */
#define SN_WANT_COUNTERS
#include "publish.h"

#include <string.h>

#define COUNTERS (sizeof(sn_counters) / sizeof(sn_counters[0]))
#define TICKS_AHEAD 2
#define TICKS_WAITED 3

static struct sn_counter *counter_of(struct sn_device *device, size_t index)
{
    return (struct sn_counter *)((char *)device + sn_counters[index]);
}

static const struct sn_counter *counter_in(const struct sn_device *device, size_t index)
{
    return (const struct sn_counter *)((const char *)device + sn_counters[index]);
}

static int changes(const struct sn_counter *wanted, const struct sn_counter *active, int other_curve)
{
    return wanted->start != active->start || wanted->idle_rate != active->idle_rate ||
           wanted->span_rate != active->span_rate || (other_curve && wanted->span_rate != 0);
}

static int other_curve(const struct sn_device *wanted, const struct sn_device *active)
{
    return memcmp(&wanted->curve, &active->curve, sizeof(wanted->curve)) != 0;
}

int sn_same_device(const struct sn_device *wanted, const struct sn_device *active)
{
    return wanted->present && active->present && memcmp(&wanted->uuid, &active->uuid, sizeof(wanted->uuid)) == 0;
}

static int device_changes(const struct sn_device *wanted, const struct sn_device *active)
{
    int curve = other_curve(wanted, active);

    for (size_t i = 0; i < COUNTERS; i++)
        if (changes(counter_in(wanted, i), counter_in(active, i), curve))
            return 1;
    return 0;
}

static uint64_t latest_anchor(const struct sn_device *device)
{
    uint64_t latest = 0;

    for (size_t i = 0; i < COUNTERS; i++)
        if (counter_in(device, i)->anchor > latest)
            latest = counter_in(device, i)->anchor;
    return latest;
}

static uint64_t tick(void)
{
    struct timespec resolution;

    clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
    return (uint64_t)resolution.tv_nsec;
}

static uint64_t wait_until(uint64_t anchor)
{
    struct timespec pause = {0, (long)tick()};
    uint64_t now = sn_clock();

    for (int i = 0; i < TICKS_WAITED && now < anchor; i++) {
        nanosleep(&pause, NULL);
        now = sn_clock();
    }
    return now;
}

struct sn_schedule sn_plan_counters(const struct sn_change *change)
{
    struct sn_schedule schedule = {sn_clock(), 0, change->other_boot};
    uint64_t latest = 0;
    int needed = 0;

    for (uint32_t i = 0; change->active && i < change->count; i++) {
        const struct sn_device *active = &change->active->device[i];

        if (!sn_same_device(change->wanted[i], active))
            continue;
        if (latest_anchor(active) > latest)
            latest = latest_anchor(active);
        needed = needed || change->other_boot || device_changes(change->wanted[i], active);
    }
    if (!needed)
        return schedule;
    schedule.now = wait_until(latest);
    do {
        schedule.anchor = schedule.now + TICKS_AHEAD * tick();
        __atomic_store_n(&change->active->node.counters_until, schedule.anchor, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        schedule.now = sn_clock();
    } while (schedule.now >= schedule.anchor);
    return schedule;
}

static void start_anew(struct sn_counter *counter, uint64_t now)
{
    counter->anchor = counter->old_anchor = now;
    counter->value = counter->old_value = counter->start;
}

static void carry_over(struct sn_counter *counter, const struct sn_counter *active)
{
    counter->anchor = active->anchor;
    counter->value = active->value;
    counter->old_anchor = active->old_anchor;
    counter->old_value = active->old_value;
    counter->old_idle_rate = active->old_idle_rate;
    counter->old_span_rate = active->old_span_rate;
}

static void anchor_anew(struct sn_counter *counter, const struct sn_counter *active, const struct sn_device *device,
                        const struct sn_schedule *schedule)
{
    counter->anchor = schedule->anchor;
    counter->old_anchor = active->anchor;
    counter->old_value = active->value;
    /* an anchor that no reader of the active slot can pass is of another boot: only its value means something here */
    if (active->anchor < schedule->anchor) {
        counter->old_idle_rate = active->idle_rate;
        counter->old_span_rate = active->span_rate;
    }
    counter->value = counter->old_value + sn_growth(&device->old_curve, counter->old_idle_rate, counter->old_span_rate,
                                                    counter->old_anchor, counter->anchor);
    if (counter->start != active->start && counter->start > counter->value)
        counter->value = counter->start;
}

void sn_carry_counters(struct sn_device *device, const struct sn_device *active, const struct sn_schedule *schedule)
{
    int same = active && sn_same_device(device, active);
    int curve = same && other_curve(device, active);
    int anew = same && (schedule->other_boot || device_changes(device, active));

    if (same)
        device->old_curve = anew ? active->curve : active->old_curve;
    for (size_t i = 0; i < COUNTERS; i++) {
        struct sn_counter *counter = counter_of(device, i);

        if (!same)
            start_anew(counter, schedule->now);
        else if (schedule->other_boot || changes(counter, counter_in(active, i), curve))
            anchor_anew(counter, counter_in(active, i), device, schedule);
        else
            carry_over(counter, counter_in(active, i));
    }
}
