/* The rules of native/nvml/rules.h for ctypes, and reads that keep to them. */
#include "pairs.h"

#include <linux/futex.h>
#include <sys/syscall.h>

int64_t test_load(const struct sn_curve *curve, uint64_t t)
{
    return sn_load(curve, t);
}

void test_integral(const struct sn_curve *curve, uint64_t t, uint64_t out[2])
{
    sn_u128 integral = sn_integral(curve, t);

    out[0] = (uint64_t)integral;
    out[1] = (uint64_t)(integral >> 64);
}

uint64_t test_growth(const struct sn_curve *curve, uint64_t idle_rate, uint64_t span_rate, uint64_t t0, uint64_t t)
{
    return sn_growth(curve, idle_rate, span_rate, t0, t);
}

int64_t test_gauge(const struct sn_gauge *gauge, const struct sn_curve *curve, uint64_t t)
{
    return sn_gauge_at(gauge, curve, t);
}

uint64_t test_clock(void)
{
    return sn_clock();
}

/* Copies `size` bytes at `offset` of the active slot; 0 if that could not be had whole. */
int test_copy(const struct sn_image *image, size_t offset, void *out, size_t size)
{
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t number = sn_done(image);

        memcpy(out, (const char *)sn_slot_of(image, number) + offset, size);
        if (sn_whole(image, number))
            return 1;
    }
    return 0;
}

/* The counter at `offset` of device `index`, now. */
int test_counter(const struct sn_image *image, uint32_t index, size_t offset, uint64_t *value)
{
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t number = sn_done(image);
        const struct sn_slot *slot = sn_slot_of(image, number);
        const struct sn_device *device = &slot->device[index];

        *value = sn_counter_at((const struct sn_counter *)((const char *)device + offset), &device->curve,
                               &device->old_curve, sn_counter_time(slot, sn_clock()));
        if (sn_whole(image, number))
            return 1;
    }
    return 0;
}

/* Sleeps on the read-only mapped image until there are more than `seen` events; 0 if that takes 10 s and more. */
int test_wait(const char *path, uint32_t seen)
{
    const struct sn_image *image = map_file(path, sizeof(*image), 0);
    struct timespec patience = {10, 0};
    long slept = 0;

    while (slept == 0 && __atomic_load_n(&image->header.event_sequence, __ATOMIC_ACQUIRE) == seen)
        slept = syscall(SYS_futex, &image->header.event_sequence, FUTEX_WAIT, seen, &patience, NULL, 0);
    return __atomic_load_n(&image->header.event_total, __ATOMIC_ACQUIRE) > seen;
}
