/* nvmlInit, nvmlShutdown and the view of visible devices that the first nvmlInit fixes.
 *
 * The lock holds its owner's process id: a child that was forked while another thread of its parent was in here finds a
 * lock whose owner it does not have, and takes it. What the lock guards is either whole or built anew by whoever takes
 * it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "access.h"
#include "events.h"
#include "gpm.h"
#include "image.h"
#include "init.h"

static int lock_owner;
static unsigned int references;

void sn_lock(void)
{
    int self = getpid();
    int owner = 0;

    while (!__atomic_compare_exchange_n(&lock_owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (owner == self) {
            sched_yield();
            owner = 0;
        }
    }
}

void sn_unlock(void)
{
    __atomic_store_n(&lock_owner, 0, __ATOMIC_RELEASE);
}

/* Modules, udev and containers decide by name which devices a process may see: only the name counts. */
static bool has_device_file(unsigned int minor)
{
    char path[32];

    snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
    return access(path, F_OK) == 0;
}

struct found {
    unsigned int index;
    uint32_t epoch;
    uint32_t minor;
};

/* Reads a device's beginning, up to its minor number. Through the file: a look at the mapping would make 64 KiB of it
 * resident for each device, whether the program ever asks for that device or not. */
static bool read_device(int file, const struct sn_image *image, const struct sn_device *device, struct found *found)
{
    char start[offsetof(struct sn_device, minor_number) + sizeof(struct sn_word)];
    off_t at = (const char *)device - (const char *)image;
    uint32_t present;

    if (pread(file, start, sizeof(start), at) != (ssize_t)sizeof(start))
        return false;
    memcpy(&present, start + offsetof(struct sn_device, present), sizeof(present));
    memcpy(&found->epoch, start + offsetof(struct sn_device, epoch), sizeof(found->epoch));
    memcpy(&found->minor, start + offsetof(struct sn_device, minor_number.value), sizeof(found->minor));
    return present != 0;
}

static unsigned int present_devices(int file, const struct sn_image *image, struct found found[SN_MAX_DEVICES])
{
    unsigned int count = 0;

    for (int tries = SN_TRIES; tries > 0; tries--) {
        uint64_t done = sn_done(image);
        const struct sn_slot *slot = sn_slot_of(image, done);
        unsigned int limit = slot->node.device_count;

        count = 0;
        for (unsigned int i = 0; i < limit && i < SN_MAX_DEVICES; i++) {
            found[count].index = i;
            count += read_device(file, image, &slot->device[i], &found[count]);
        }
        if (sn_whole(image, done))
            break;
    }
    return count;
}

/* A node that only the environment leads to has no part in /dev, which may be that of another node. */
static bool regardless_of_files(void)
{
    const char *devices = secure_getenv("SIMNODE_DEVICES");

    return devices != NULL && strcmp(devices, "all") == 0 && secure_getenv("SIMNODE_IMAGE") != NULL;
}

/* All or none of the device files there: every device is visible; else those that have one, in order. */
static void take_view(int file, const struct sn_image *image)
{
    struct found found[SN_MAX_DEVICES];
    bool here[SN_MAX_DEVICES];
    unsigned int count = present_devices(file, image, found);
    unsigned int files = 0;
    bool regardless = regardless_of_files();

    for (unsigned int i = 0; i < count; i++) {
        here[i] = !regardless && has_device_file(found[i].minor);
        files += here[i];
    }
    memset(sn_view.visible, SN_NO_DEVICE, sizeof(sn_view.visible));
    sn_view.count = 0;
    sn_view.by_files = files != 0;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int index = found[i].index;
        sn_view.epoch[index] = found[i].epoch;
        if (files != 0 && !here[i])
            continue;
        sn_view.device[sn_view.count] = (uint8_t)index;
        sn_view.visible[index] = (uint8_t)sn_view.count++;
    }
}

/* Not 0 where the kernel modules are of another driver than this library: then nobody gets in. Whoever is in stays. */
static nvmlReturn_t answer_of(const struct sn_image *image)
{
    uint32_t code = 0;

    for (int tries = SN_TRIES; tries > 0; tries--) {
        uint64_t done = sn_done(image);
        memcpy(&code, &sn_slot_of(image, done)->node.init_code, sizeof(code));
        if (sn_whole(image, done))
            break;
    }
    return (nvmlReturn_t)code;
}

nvmlReturn_t sn_image_before_init(const struct sn_image **image)
{
    nvmlReturn_t code;
    int file;

    *image = sn_image();
    if (*image != NULL)
        return NVML_SUCCESS;
    sn_lock();
    code = sn_find_image(image, &file);
    sn_unlock();
    if (code == NVML_SUCCESS)
        close(file);
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    const struct sn_image *image = NULL;
    nvmlReturn_t code = NVML_SUCCESS;
    int file;

    (void)flags;
    sn_lock();
    if (sn_image() == NULL) {
        code = sn_find_image(&image, &file);
        if (code == NVML_SUCCESS) {
            code = answer_of(image);
            if (code == NVML_SUCCESS) {
                take_view(file, image);
                references = 0;
                __atomic_store_n(&sn_view.image, image, __ATOMIC_RELEASE);
            }
            close(file);
        }
    }
    if (code == NVML_SUCCESS)
        references++;
    sn_unlock();
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

NVML_EXPORT nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

NVML_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t code = NVML_SUCCESS;

    sn_lock();
    if (sn_image() == NULL)
        code = NVML_ERROR_UNINITIALIZED;
    else if (--references == 0) {
        __atomic_store_n(&sn_view.image, NULL, __ATOMIC_RELEASE);
        sn_free_event_sets();
        sn_free_gpm_samples();
    }
    sn_unlock();
    return code;
}
