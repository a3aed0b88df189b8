/* The one way to reach a cell of the image.
 *
 * A read opens a handle (initialised? ours?), looks at the newest slot, copies what it wants and asks whether what it
 * saw was one whole publish; if not, again, a bounded number of times. No lock, no allocation, no system call.
 *
 *     struct sn_read read;
 *     nvmlReturn_t code = sn_open(&read, device);
 *     if (code != NVML_SUCCESS)
 *         return code;
 *     do {
 *         code = sn_look(&read);
 *         if (code == NVML_SUCCESS) { copy from read.device into locals }
 *     } while (sn_again(&read, &code));
 *
 * Define _GNU_SOURCE before the first include. */
#ifndef SN_ACCESS_H
#define SN_ACCESS_H

#include <stdbool.h>
#include <string.h>

#include "handles.h"
#include "rules.h"

/* A reader is torn only by a publish that begins and another that began before it; so many in a row mean a broken
 * image. */
#define SN_TRIES 10000
#define SN_NO_INSTANCE 0xffffffffu
#define SN_LONGEST_TEXT 96

enum sn_kind { SN_WORD, SN_WIDE, SN_GAUGE, SN_COUNTER };

/* One value to read: its kind and its offset in struct sn_device. */
struct sn_want {
    enum sn_kind kind;
    size_t at;
};

/* A read in progress. */
struct sn_read {
    const struct sn_image *image;
    const struct sn_slot *slot;
    const struct sn_device *device;
    uint64_t done;
    unsigned int index;
    unsigned int epoch;
    int tries;
};

/* The same of a MIG device, with its own identity on top of its GPU's. */
struct sn_mig_read {
    struct sn_read parent;
    const struct sn_mig *mig;
    unsigned int slot;
    unsigned int epoch;
};

/* INVALID_ARGUMENT if the handle is no MIG device's. */
nvmlReturn_t sn_mig_open(struct sn_mig_read *read, nvmlDevice_t handle);
/* GPU_IS_LOST once the MIG device is gone. Torn or not: ask sn_again(&read->parent, …). */
nvmlReturn_t sn_mig_look(struct sn_mig_read *read);
/* What a handle that is no device's answers: NOT_SUPPORTED for a MIG device's, else INVALID_ARGUMENT. */
nvmlReturn_t sn_refuse_handle(nvmlDevice_t handle);
/* Answers of functions that have none: after the checks every function makes, NOT_SUPPORTED. */
nvmlReturn_t sn_refuse_device(nvmlDevice_t device);
nvmlReturn_t sn_refuse(void);
/* What a call that changes something answers: NO_PERMISSION where the device has what it would change. */
nvmlReturn_t sn_forbid(nvmlDevice_t device, enum sn_kind kind, size_t at);
/* What a call with a null pointer or an impossible number answers if the device would have answered at all. */
nvmlReturn_t sn_bad_argument(nvmlDevice_t device);
/* Reads `count` values in one consistent look; the first that has none decides the code. Nothing is written then. */
nvmlReturn_t sn_get_cells(nvmlDevice_t device, const struct sn_want *wants, unsigned int count, uint64_t *values);
nvmlReturn_t sn_get_one(nvmlDevice_t device, enum sn_kind kind, size_t at, unsigned long long *out);
/* Two words, both or none. */
nvmlReturn_t sn_get_pair(nvmlDevice_t device, size_t first_at, size_t second_at, unsigned int *first,
                         unsigned int *second);
/* Copies a text of `capacity` bytes in the image; `out` may belong to the caller and has `length` bytes. */
nvmlReturn_t sn_get_text(nvmlDevice_t device, size_t at, size_t capacity, char *out, unsigned int length);
/* Hands a text to a caller as NVML does: INVALID_ARGUMENT without a buffer, INSUFFICIENT_SIZE in too small a one. */
nvmlReturn_t sn_put_text(const char *text, char *out, unsigned int length);
/* The rest of sn_get_word and sn_get_gauge, for them alone. */
nvmlReturn_t sn_word_again(nvmlDevice_t device, size_t at, unsigned int *out);
nvmlReturn_t sn_gauge_again(nvmlDevice_t device, size_t at, unsigned int *out);
nvmlReturn_t sn_gauge_under_load(nvmlDevice_t device, size_t at, unsigned int *out, const struct sn_image *image,
                                 const struct sn_device *from, uint64_t done);
/* The time as NVML stamps it, us since the epoch. */
unsigned long long sn_wall_clock_us(void);

static inline const struct sn_image *sn_image(void)
{
    return __atomic_load_n(&sn_view.image, __ATOMIC_ACQUIRE);
}

static inline nvmlReturn_t sn_open(struct sn_read *read, nvmlDevice_t handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)sn_handles;

    read->image = sn_image();
    read->index = (unsigned int)(at / sizeof(sn_handles[0]));
    read->epoch = (unsigned int)(at / sizeof(struct nvmlDevice_st) % SN_EPOCHS);
    read->tries = SN_TRIES;
    if (read->image == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (at >= sizeof(sn_handles) || at % sizeof(struct nvmlDevice_st) != 0)
        return sn_refuse_handle(handle);
    return NVML_SUCCESS;
}

static inline nvmlReturn_t sn_look(struct sn_read *read)
{
    read->done = sn_done(read->image);
    read->slot = sn_slot_of(read->image, read->done);
    read->device = &read->slot->device[read->index];
    if (read->device->present == 0 || read->device->epoch % SN_EPOCHS != read->epoch)
        return NVML_ERROR_GPU_IS_LOST;
    return (nvmlReturn_t)read->device->lost;
}

/* False when the look was whole, or when there is no point in another; *code is then the answer. */
static inline bool sn_again(struct sn_read *read, nvmlReturn_t *code)
{
    if (sn_whole(read->image, read->done))
        return false;
    if (--read->tries > 0)
        return true;
    *code = NVML_ERROR_UNKNOWN;
    return false;
}

static inline const void *sn_cell(const struct sn_read *read, size_t at)
{
    return (const char *)read->device + at;
}

static inline int64_t sn_gauge_now(const struct sn_read *read, const struct sn_gauge *gauge)
{
    if (gauge->span == 0)
        return gauge->base;
    return sn_gauge_at(gauge, &read->device->curve, sn_clock());
}

static inline uint64_t sn_counter_now(const struct sn_read *read, const struct sn_counter *counter)
{
    uint64_t now = sn_counter_time(read->slot, sn_clock());

    return sn_counter_at(counter, &read->device->curve, &read->device->old_curve, now);
}

/* The two kinds that monitors poll most are read in one look without a loop; whatever is out of the ordinary (torn,
 * load, a handle that is no device's) goes on in a function of its own, so that the ordinary needs no stack. */
static inline nvmlReturn_t sn_get_word(nvmlDevice_t device, size_t at, unsigned int *out)
{
    struct sn_read read;
    uint32_t value = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (out == NULL)
        return sn_bad_argument(device);
    code = sn_look(&read);
    if (code == NVML_SUCCESS) {
        const struct sn_word *word = sn_cell(&read, at);
        value = word->value;
        code = (nvmlReturn_t)word->status;
    }
    if (!sn_whole(read.image, read.done))
        return sn_word_again(device, at, out);
    if (code == NVML_SUCCESS)
        *out = value;
    return code;
}

static inline nvmlReturn_t sn_get_gauge(nvmlDevice_t device, size_t at, unsigned int *out)
{
    struct sn_read read;
    int64_t value = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (out == NULL)
        return sn_bad_argument(device);
    code = sn_look(&read);
    if (code == NVML_SUCCESS) {
        const struct sn_gauge *gauge = sn_cell(&read, at);
        if (gauge->span != 0)
            return sn_gauge_under_load(device, at, out, read.image, read.device, read.done);
        value = gauge->base;
        code = (nvmlReturn_t)gauge->status;
    }
    if (!sn_whole(read.image, read.done))
        return sn_gauge_again(device, at, out);
    if (code == NVML_SUCCESS)
        *out = (unsigned int)value;
    return code;
}

static inline nvmlReturn_t sn_get_wide(nvmlDevice_t device, size_t at, unsigned long long *out)
{
    return sn_get_one(device, SN_WIDE, at, out);
}

static inline nvmlReturn_t sn_get_counter(nvmlDevice_t device, size_t at, unsigned long long *out)
{
    return sn_get_one(device, SN_COUNTER, at, out);
}

#endif
