/* Which devices a process sees and in which order: CUDA_DEVICE_ORDER arranges NVML's, CUDA_VISIBLE_DEVICES picks.
 *
 * A device that is lost has no place in the order. MIG devices are not enumerated; the list's entries that name one are
 * passed over, every other entry that leads nowhere ends the list. */
#define _GNU_SOURCE
#include "driver_api.h"

struct candidate {
    nvmlDevice_t device;
    uint64_t speed;
    uint64_t address;
    char uuid[SN_LONGEST_TEXT];
};

static unsigned int word(nvmlDevice_t device, size_t at)
{
    unsigned int value = 0;

    (void)sn_get_word(device, at, &value);
    return value;
}

/* All devices that live, in NVML's order. */
static unsigned int living(struct candidate *found)
{
    unsigned int count = 0;

    for (unsigned int index = 0; index < sn_view.count; index++) {
        struct candidate *next = &found[count];
        if (nvmlDeviceGetHandleByIndex_v2(index, &next->device) != NVML_SUCCESS)
            continue;
        next->speed = (uint64_t)word(next->device, offsetof(struct sn_device, multiprocessor_count)) *
                      word(next->device, offsetof(struct sn_device, clocks_sm_max));
        next->address = (uint64_t)word(next->device, offsetof(struct sn_device, pci_domain)) << 32 |
                        word(next->device, offsetof(struct sn_device, pci_bus)) << 8 |
                        word(next->device, offsetof(struct sn_device, pci_device));
        if (nvmlDeviceGetUUID(next->device, next->uuid, sizeof(next->uuid)) != NVML_SUCCESS)
            next->uuid[0] = '\0';
        count++;
    }
    return count;
}

static bool before(const struct candidate *one, const struct candidate *other, bool by_bus)
{
    if (!by_bus && one->speed != other->speed)
        return one->speed > other->speed;
    return one->address < other->address;
}

static void sort(struct candidate *found, unsigned int count, bool by_bus)
{
    for (unsigned int i = 1; i < count; i++) {
        struct candidate moved = found[i];
        unsigned int at = i;
        for (; at > 0 && before(&moved, &found[at - 1], by_bus); at--)
            found[at] = found[at - 1];
        found[at] = moved;
    }
}

/* The place of the only device whose UUID begins so; `count` if there is none or more than one. */
static unsigned int by_uuid(const struct candidate *found, unsigned int count, const char *text, size_t length)
{
    unsigned int match = count;

    for (unsigned int i = 0; i < count; i++) {
        if (strncmp(found[i].uuid, text, length) != 0)
            continue;
        if (match != count)
            return count;
        match = i;
    }
    return match;
}

/* The place that an entry of the list names, `count` if it names none. A number ends where its digits end. */
static unsigned int place_of(const struct candidate *found, unsigned int count, const char *entry, size_t length)
{
    unsigned int number = 0;
    size_t digits = 0;

    if (length > 4 && strncmp(entry, "GPU-", 4) == 0)
        return by_uuid(found, count, entry, length);
    for (; digits < length && entry[digits] >= '0' && entry[digits] <= '9' && number < count; digits++)
        number = number * 10 + (unsigned int)(entry[digits] - '0');
    return digits != 0 && number < count ? number : count;
}

static bool is_listed(const struct sn_ordinals *ordinals, nvmlDevice_t device)
{
    for (unsigned int i = 0; i < ordinals->count; i++)
        if (ordinals->device[i] == device)
            return true;
    return false;
}

/* Adds what one entry names; false where the list ends. A device named twice makes the whole list void. */
static bool pick(struct sn_ordinals *ordinals, const struct candidate *found, unsigned int count, const char *entry,
                 size_t length)
{
    unsigned int place = place_of(found, count, entry, length);

    if (place == count)
        return false;
    if (is_listed(ordinals, found[place].device)) {
        ordinals->count = 0;
        return false;
    }
    ordinals->device[ordinals->count++] = found[place].device;
    return true;
}

static void pick_all(struct sn_ordinals *ordinals, const struct candidate *found, unsigned int count, const char *list)
{
    for (const char *end = list; end != NULL; list = end + 1) {
        size_t length;
        while (*list == ' ')
            list++;
        end = strchr(list, ',');
        length = end == NULL ? strlen(list) : (size_t)(end - list);
        while (length > 0 && list[length - 1] == ' ')
            length--;
        if (strncmp(list, "MIG-", 4) != 0 && !pick(ordinals, found, count, list, length))
            return;
        if (end == NULL)
            return;
    }
}

void sn_arrange(struct sn_ordinals *ordinals, const char *order, const char *visible)
{
    struct candidate found[SN_MAX_DEVICES];
    unsigned int count = living(found);

    sort(found, count, order != NULL && strcmp(order, "PCI_BUS_ID") == 0);
    ordinals->count = 0;
    if (visible != NULL) {
        pick_all(ordinals, found, count, visible);
        return;
    }
    for (unsigned int i = 0; i < count; i++)
        ordinals->device[ordinals->count++] = found[i].device;
}
