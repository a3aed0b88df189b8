/* Clocks: current, maximal, application, and the lists of supported ones. MHz throughout. */
#define _GNU_SOURCE
#include "clocks.h"

static const size_t current[NVML_CLOCK_COUNT] = {
    offsetof(struct sn_device, clocks_graphics_current),
    offsetof(struct sn_device, clocks_sm_current),
    offsetof(struct sn_device, clocks_memory_current),
    offsetof(struct sn_device, clocks_video_current),
};
static const size_t maximal[NVML_CLOCK_COUNT] = {
    offsetof(struct sn_device, clocks_graphics_max),
    offsetof(struct sn_device, clocks_sm_max),
    offsetof(struct sn_device, clocks_memory_max),
    offsetof(struct sn_device, clocks_video_max),
};
/* SM and graphics clocks are set together; the video clock follows and has no setting of its own. */
static const size_t application[NVML_CLOCK_COUNT] = {
    offsetof(struct sn_device, clocks_graphics_app),
    offsetof(struct sn_device, clocks_graphics_app),
    offsetof(struct sn_device, clocks_memory_app),
    0,
};
static const size_t application_default[NVML_CLOCK_COUNT] = {
    offsetof(struct sn_device, clocks_graphics_app_default),
    offsetof(struct sn_device, clocks_graphics_app_default),
    offsetof(struct sn_device, clocks_memory_app_default),
    0,
};
static const size_t boost[NVML_CLOCK_COUNT] = {
    offsetof(struct sn_device, clocks_graphics_customer_boost_max),
    offsetof(struct sn_device, clocks_sm_max),
    offsetof(struct sn_device, clocks_memory_max),
    offsetof(struct sn_device, clocks_video_max),
};

static nvmlReturn_t word_of(const size_t table[NVML_CLOCK_COUNT], nvmlDevice_t device, unsigned int type,
                            unsigned int *mhz)
{
    if (type >= NVML_CLOCK_COUNT || mhz == NULL)
        return sn_bad_argument(device);
    return table[type] == 0 ? sn_refuse_device(device) : sn_get_word(device, table[type], mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    if (type >= NVML_CLOCK_COUNT)
        return sn_bad_argument(device);
    return sn_get_gauge(device, current[type], mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    return word_of(maximal, device, type, mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    return word_of(application, device, type, mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned int type,
                                                               unsigned int *mhz)
{
    return word_of(application_default, device, type, mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    return word_of(boost, device, type, mhz);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int *mhz)
{
    switch (id) {
    case NVML_CLOCK_ID_CURRENT:
        return nvmlDeviceGetClockInfo(device, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_TARGET:
        return word_of(application, device, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_DEFAULT:
        return word_of(application_default, device, type, mhz);
    case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
        return word_of(boost, device, type, mhz);
    default:
        return sn_bad_argument(device);
    }
}

nvmlReturn_t sn_copy_clocks(nvmlDevice_t device, struct sn_clocks copy[SN_MAX_MEMORY_CLOCKS], unsigned int *count)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS) {
            *count = read.device->clocks_count;
            memcpy(copy, read.device->clocks, sizeof(read.device->clocks));
        }
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS && *count > SN_MAX_MEMORY_CLOCKS)
        return NVML_ERROR_UNKNOWN;
    return code == NVML_SUCCESS && *count == 0 ? NVML_ERROR_NOT_SUPPORTED : code;
}

/* The two-pass contract: too small a buffer, or none, is told the number. */
static nvmlReturn_t fits(unsigned int number, unsigned int *count, const unsigned int *out)
{
    unsigned int room = *count;

    *count = number;
    if (number > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return out == NULL && number != 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz)
{
    struct sn_clocks clocks[SN_MAX_MEMORY_CLOCKS];
    unsigned int number = 0;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = sn_copy_clocks(device, clocks, &number);
    if (code == NVML_SUCCESS)
        code = fits(number, count, mhz);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < number; i++)
        mhz[i] = clocks[i].memory_mhz;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                              unsigned int *count, unsigned int *mhz)
{
    struct sn_clocks clocks[SN_MAX_MEMORY_CLOCKS];
    unsigned int number = 0;
    unsigned int row = 0;
    nvmlReturn_t code;

    if (count == NULL)
        return sn_bad_argument(device);
    code = sn_copy_clocks(device, clocks, &number);
    if (code != NVML_SUCCESS)
        return code;
    while (row < number && clocks[row].memory_mhz != memory_mhz)
        row++;
    if (row == number)
        return NVML_ERROR_NOT_FOUND;
    if (clocks[row].count > SN_MAX_GRAPHICS_CLOCKS)
        return NVML_ERROR_UNKNOWN;
    code = fits(clocks[row].count, count, mhz);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < clocks[row].count; i++)
        mhz[i] = clocks[row].graphics_mhz[i];
    return code;
}
