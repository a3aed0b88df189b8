/* Reads that need not be inlined, and the refusals. */
#define _GNU_SOURCE
#include "access.h"

nvmlReturn_t sn_mig_open(struct sn_mig_read *read, nvmlDevice_t handle)
{
    size_t at = ((uintptr_t)handle - (uintptr_t)sn_mig_handles) / sizeof(struct nvmlDevice_st);

    read->parent.image = sn_image();
    if (read->parent.image == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!sn_is_mig_handle(handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    read->epoch = (unsigned int)(at % SN_EPOCHS);
    read->slot = (unsigned int)(at / SN_EPOCHS % SN_MAX_MIG_DEVICES);
    read->parent.index = (unsigned int)(at / SN_EPOCHS / SN_MAX_MIG_DEVICES);
    read->parent.epoch = sn_view.epoch[read->parent.index] % SN_EPOCHS;
    read->parent.tries = SN_TRIES;
    return NVML_SUCCESS;
}

nvmlReturn_t sn_mig_look(struct sn_mig_read *read)
{
    nvmlReturn_t code = sn_look(&read->parent);

    read->mig = &read->parent.device->mig[read->slot];
    if (code == NVML_SUCCESS && (read->mig->present == 0 || read->mig->epoch % SN_EPOCHS != read->epoch))
        return NVML_ERROR_GPU_IS_LOST;
    return code;
}

nvmlReturn_t sn_refuse_handle(nvmlDevice_t handle)
{
    struct sn_mig_read read;
    nvmlReturn_t code = sn_mig_open(&read, handle);

    if (code != NVML_SUCCESS)
        return code;
    do
        code = sn_mig_look(&read);
    while (sn_again(&read.parent, &code));
    return code == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : code;
}

nvmlReturn_t sn_refuse_device(nvmlDevice_t device)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do
        code = sn_look(&read);
    while (sn_again(&read, &code));
    return code == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : code;
}

nvmlReturn_t sn_forbid(nvmlDevice_t device, enum sn_kind kind, size_t at)
{
    struct sn_want want = {kind, at};
    uint64_t value;
    nvmlReturn_t code = sn_get_cells(device, &want, 1, &value);

    return code == NVML_SUCCESS ? NVML_ERROR_NO_PERMISSION : code;
}

nvmlReturn_t sn_refuse(void)
{
    return sn_image() == NULL ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t sn_bad_argument(nvmlDevice_t device)
{
    nvmlReturn_t code = sn_refuse_device(device);

    return code == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_INVALID_ARGUMENT : code;
}

static nvmlReturn_t value_of(const struct sn_read *read, const struct sn_want *want, uint64_t *value)
{
    const void *cell = sn_cell(read, want->at);

    switch (want->kind) {
    case SN_WORD:
        *value = ((const struct sn_word *)cell)->value;
        return (nvmlReturn_t)((const struct sn_word *)cell)->status;
    case SN_WIDE:
        *value = ((const struct sn_wide *)cell)->value;
        return (nvmlReturn_t)((const struct sn_wide *)cell)->status;
    case SN_GAUGE:
        *value = (uint64_t)sn_gauge_now(read, cell);
        return (nvmlReturn_t)((const struct sn_gauge *)cell)->status;
    case SN_COUNTER:
        *value = sn_counter_now(read, cell);
        return (nvmlReturn_t)((const struct sn_counter *)cell)->status;
    }
    return NVML_ERROR_UNKNOWN;
}

nvmlReturn_t sn_get_cells(nvmlDevice_t device, const struct sn_want *wants, unsigned int count, uint64_t *values)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++)
            code = value_of(&read, &wants[i], &values[i]);
    } while (sn_again(&read, &code));
    return code;
}

nvmlReturn_t sn_word_again(nvmlDevice_t device, size_t at, unsigned int *out)
{
    struct sn_want want = {SN_WORD, at};
    uint64_t value;
    nvmlReturn_t code = sn_get_cells(device, &want, 1, &value);

    if (code == NVML_SUCCESS)
        *out = (unsigned int)value;
    return code;
}

nvmlReturn_t sn_gauge_again(nvmlDevice_t device, size_t at, unsigned int *out)
{
    struct sn_want want = {SN_GAUGE, at};
    uint64_t value;
    nvmlReturn_t code = sn_get_cells(device, &want, 1, &value);

    if (code == NVML_SUCCESS)
        *out = (unsigned int)value;
    return code;
}

nvmlReturn_t sn_gauge_under_load(nvmlDevice_t device, size_t at, unsigned int *out, const struct sn_image *image,
                                 const struct sn_device *from, uint64_t done)
{
    const struct sn_gauge *gauge = (const struct sn_gauge *)((const char *)from + at);
    int64_t value = sn_gauge_at(gauge, &from->curve, sn_clock());
    nvmlReturn_t code = (nvmlReturn_t)gauge->status;

    if (!sn_whole(image, done))
        return sn_gauge_again(device, at, out);
    if (code == NVML_SUCCESS)
        *out = (unsigned int)value;
    return code;
}

nvmlReturn_t sn_get_one(nvmlDevice_t device, enum sn_kind kind, size_t at, unsigned long long *out)
{
    struct sn_want want = {kind, at};
    uint64_t value;
    nvmlReturn_t code;

    if (out == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, &want, 1, &value);
    if (code == NVML_SUCCESS)
        *out = value;
    return code;
}

nvmlReturn_t sn_get_pair(nvmlDevice_t device, size_t first_at, size_t second_at, unsigned int *first,
                         unsigned int *second)
{
    struct sn_want wants[] = {{SN_WORD, first_at}, {SN_WORD, second_at}};
    uint64_t values[2];
    nvmlReturn_t code;

    code = sn_get_cells(device, wants, 2, values);
    if (first == NULL || second == NULL)
        return code == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : code;
    if (code == NVML_SUCCESS) {
        *first = (unsigned int)values[0];
        *second = (unsigned int)values[1];
    }
    return code;
}

nvmlReturn_t sn_get_text(nvmlDevice_t device, size_t at, size_t capacity, char *out, unsigned int length)
{
    struct sn_read read;
    char text[SN_LONGEST_TEXT + 1] = "";
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            const char *cell = sn_cell(&read, at);
            uint32_t status;
            memcpy(text, cell, capacity);
            text[capacity] = '\0';
            memcpy(&status, cell + capacity, sizeof(status));
            code = (nvmlReturn_t)status;
        }
    } while (sn_again(&read, &code));
    return code == NVML_SUCCESS ? sn_put_text(text, out, length) : code;
}

nvmlReturn_t sn_put_text(const char *text, char *out, unsigned int length)
{
    size_t size = strlen(text) + 1;

    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (size > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, size);
    return NVML_SUCCESS;
}

unsigned long long sn_wall_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}
