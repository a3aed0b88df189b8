/*
 * The rules on which the image's readers and its publisher agree: which slot is whole, what load a curve has at a time,
 * what a gauge and a counter read then, where an event lies. Header only, no state, no system call but the clock's vdso.
 *
 * A read, in this order, again from the top if it was not whole:
 *
 *     number = sn_done(image);
 *     slot = sn_slot_of(image, number);
 *     now = sn_clock();                          only if a gauge has a span, or for a counter
 *     ... copy or evaluate in place ...          counters at sn_counter_time(slot, now)
 *     if (sn_whole(image, number)) return;
 *
 * The clock is read after sn_done, so that what a counter did before its slot's predecessor need not be known, and before
 * counters_until, so that whoever finds none has not yet passed the next anchor. Evaluating a slot that is being rewritten
 * is safe: every index is masked; the result is thrown away.
 *
 * Define _GNU_SOURCE before the first include.
 */
#ifndef SN_RULES_H
#define SN_RULES_H

#include <time.h>

#include "image_layout.h"

#define SN_FULL_LOAD 65536
#define SN_RATE_SHIFT 48

typedef unsigned __int128 sn_u128;

/* The clock of all gauges and counters, in ns: it moves once a tick, and never back. */
static inline uint64_t sn_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The number of the last complete publish; 0 if there was none. */
static inline uint64_t sn_done(const struct sn_image *image)
{
    return __atomic_load_n(&image->header.done, __ATOMIC_ACQUIRE);
}

/* The slot that publish `number` wrote. */
static inline const struct sn_slot *sn_slot_of(const struct sn_image *image, uint64_t number)
{
    return &image->slot[number & 1];
}

/* True if what was read from the slot of publish `number` since sn_done was all of that publish. */
static inline int sn_whole(const struct sn_image *image, uint64_t number)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&image->header.begin, __ATOMIC_RELAXED) < number + 2;
}

/* When to read the slot's counters if the clock, read since sn_done, says `now`: not beyond where their successor begins. */
static inline uint64_t sn_counter_time(const struct sn_slot *slot, uint64_t now)
{
    uint64_t until;

    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    until = __atomic_load_n(&slot->node.counters_until, __ATOMIC_RELAXED);
    return until != 0 && now > until ? until : now;
}

/* Where in its period the curve is at time t: a fraction of 2^64. The high half of the product counts whole periods. */
static inline sn_u128 sn_periods(const struct sn_curve *curve, uint64_t t)
{
    return (sn_u128)t * curve->inverse_period;
}

/* The load at time t, 0 ... SN_FULL_LOAD. */
static inline int64_t sn_load(const struct sn_curve *curve, uint64_t t)
{
    uint64_t phase = (uint64_t)sn_periods(curve, t);
    unsigned int segment = (unsigned int)(phase >> 59);
    int64_t fraction = (int64_t)(phase >> 43 & 0xffff);
    int64_t from = curve->knot[segment];
    int64_t to = curve->knot[segment + 1];

    return from + ((to - from) * fraction >> 16);
}

/* The integral of the load from time 0 to t, in 2^-32 segments of full load. It never falls. */
static inline sn_u128 sn_integral(const struct sn_curve *curve, uint64_t t)
{
    sn_u128 periods = sn_periods(curve, t);
    uint64_t phase = (uint64_t)periods;
    unsigned int segment = (unsigned int)(phase >> 59);
    uint64_t fraction = phase >> 43 & 0xffff;
    uint64_t from = curve->knot[segment];
    uint64_t to = curve->knot[segment + 1];
    /* from * f * 2^17 + (to - from) * f^2, its terms so arranged that none is negative */
    uint64_t part = (from * fraction * ((UINT64_C(1) << 17) - fraction) + to * fraction * fraction) >> 17;

    return (periods >> 64) * curve->cumulative[SN_CURVE_SEGMENTS] + curve->cumulative[segment] + part;
}

/* What idle_rate and span_rate add up to from time t0 to t; 0 before t0. */
static inline uint64_t sn_growth(const struct sn_curve *curve, uint64_t idle_rate, uint64_t span_rate, uint64_t t0, uint64_t t)
{
    sn_u128 sum;

    if (t <= t0)
        return 0;
    sum = (sn_u128)idle_rate * (t - t0);
    if (span_rate != 0)
        sum += (sn_u128)span_rate * (sn_integral(curve, t) - sn_integral(curve, t0));
    return (uint64_t)(sum >> SN_RATE_SHIFT);
}

/* The counter at time t. */
static inline uint64_t sn_counter_at(const struct sn_counter *counter, const struct sn_curve *curve,
                                     const struct sn_curve *old_curve, uint64_t t)
{
    if (t < counter->anchor)
        return counter->old_value +
               sn_growth(old_curve, counter->old_idle_rate, counter->old_span_rate, counter->old_anchor, t);
    return counter->value + sn_growth(curve, counter->idle_rate, counter->span_rate, counter->anchor, t);
}

/* The gauge at time t, which does not matter if its span is 0. */
static inline int64_t sn_gauge_at(const struct sn_gauge *gauge, const struct sn_curve *curve, uint64_t t)
{
    if (gauge->span == 0)
        return gauge->base;
    /* unsigned, for a slot that is being rewritten may have any numbers, and theirs must be able to wrap */
    return (int64_t)((uint64_t)gauge->base +
                     (uint64_t)((int64_t)((uint64_t)gauge->span * (uint64_t)sn_load(curve, t) + SN_FULL_LOAD / 2) >> 16));
}

/* Where event number `sequence`, from 1, lies in the ring. */
static inline size_t sn_event_index(uint64_t sequence)
{
    return (size_t)(sequence % SN_MAX_EVENTS);
}

#endif
