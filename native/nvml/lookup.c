/* From an index, a UUID, a bus id or a serial number to a handle, and back to the index. */
#define _GNU_SOURCE
#include "lookup.h"

#include "access.h"
#include "mig.h"

/* A handle that is lost is refused where it would be given out, too. */
static nvmlReturn_t give(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t code = sn_refuse_device(sn_handle(index));

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *device = sn_handle(index);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = sn_view.count;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (device == NULL || index >= sn_view.count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give(sn_view.device[index], device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* A MIG device's index is its place on its GPU. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t code = sn_refuse_device(device);
    size_t at = ((uintptr_t)device - (uintptr_t)sn_handles) / sizeof(sn_handles[0]);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (index == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sn_is_mig_handle(device))
        return sn_mig_index(device, index);
    *index = sn_view.visible[at];
    return NVML_SUCCESS;
}

/* Copies part of a device, sick or not; false if it is gone: whoever looks a lost device up learns that it is lost. */
static bool copy_part(unsigned int index, size_t at, void *out, size_t size)
{
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, sn_handle(index));
    bool there;

    if (code != NVML_SUCCESS)
        return false;
    do {
        sn_look(&read);
        there = read.device->present != 0 && read.device->epoch % SN_EPOCHS == read.epoch;
        memcpy(out, sn_cell(&read, at), size);
    } while (sn_again(&read, &code));
    return there && code == NVML_SUCCESS;
}

/* The only visible device whose text of `capacity` bytes is this. NOT_FOUND: none; INVALID_ARGUMENT: several. */
static nvmlReturn_t by_text(const char *text, size_t at, size_t capacity, nvmlDevice_t *device)
{
    unsigned int match = SN_NO_DEVICE;

    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        char other[SN_LONGEST_TEXT + 1] = "";
        unsigned int index = sn_view.device[visible];
        if (text[0] == '\0' || !copy_part(index, at, other, capacity) || strcmp(other, text) != 0)
            continue;
        if (match != SN_NO_DEVICE)
            return NVML_ERROR_INVALID_ARGUMENT;
        match = index;
    }
    return match == SN_NO_DEVICE ? NVML_ERROR_NOT_FOUND : give(match, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t code;

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = by_text(uuid, offsetof(struct sn_device, uuid), sizeof(((struct sn_device *)0)->uuid.value), device);
    if (code == NVML_ERROR_NOT_FOUND && strncmp(uuid, "MIG-", 4) == 0)
        return sn_mig_by_uuid(uuid, device);
    return code;
}

/* Writes GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, the text of 16 raw bytes. */
static void uuid_text(const unsigned char bytes[16], char text[41])
{
    static const char digits[] = "0123456789abcdef";
    char *out = text + 4;

    memcpy(text, "GPU-", 4);
    for (unsigned int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t *uuid, nvmlDevice_t *device)
{
    char text[SN_LONGEST_TEXT] = "";

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != SN_TAG(nvmlUUID_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII)
        memcpy(text, uuid->value.str, sizeof(uuid->value.str));
    else if (uuid->type == NVML_UUID_TYPE_BINARY)
        uuid_text(uuid->value.bytes, text);
    else
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByUUID(text, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (serial == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by_text(serial, offsetof(struct sn_device, serial), sizeof(((struct sn_device *)0)->serial.value), device);
}

/* Reads hexadecimal digits at *text up to `end`; false if there is none, or the number has more than 32 bits. */
static bool parse_hex(const char **text, unsigned int *value)
{
    const char *start = *text;
    uint64_t sum = 0;

    for (; sum <= UINT32_MAX; ++*text) {
        char c = **text;
        if (c >= '0' && c <= '9')
            sum = sum << 4 | (unsigned int)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            sum = sum << 4 | (unsigned int)((c | 0x20) - 'a' + 10);
        else
            break;
    }
    *value = (unsigned int)sum;
    return *text != start && sum <= UINT32_MAX;
}

bool sn_parse_address(const char *text, struct sn_address *address)
{
    unsigned int parts[3];
    unsigned int count = 0;

    *address = (struct sn_address){0};
    for (;; text++) {
        if (count == 3 || !parse_hex(&text, &parts[count++]))
            return false;
        if (*text != ':')
            break;
    }
    if (count < 2)
        return false;
    if (*text == '.') {
        text++;
        if (!parse_hex(&text, &address->function))
            return false;
    }
    address->domain = count == 3 ? parts[0] : 0;
    address->bus = parts[count - 2];
    address->device = parts[count - 1];
    return *text == '\0';
}

nvmlReturn_t sn_address_of_index(unsigned int visible, struct sn_address *address)
{
    struct sn_word words[3];

    _Static_assert(offsetof(struct sn_device, pci_device) ==
                       offsetof(struct sn_device, pci_domain) + 2 * sizeof(words[0]),
                   "domain, bus and device lie in a row");
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (visible >= sn_view.count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!copy_part(sn_view.device[visible], offsetof(struct sn_device, pci_domain), words, sizeof(words)))
        return NVML_ERROR_GPU_IS_LOST;
    *address = (struct sn_address){words[0].value, words[1].value, words[2].value, 0};
    return NVML_SUCCESS;
}

unsigned int sn_device_at(const struct sn_address *address)
{
    for (unsigned int visible = 0; address->function == 0 && visible < sn_view.count; visible++) {
        struct sn_address other;
        if (sn_address_of_index(visible, &other) == NVML_SUCCESS && other.domain == address->domain &&
            other.bus == address->bus && other.device == address->device)
            return sn_view.device[visible];
    }
    return SN_NO_DEVICE;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    struct sn_address address;
    unsigned int index;

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (bus_id == NULL || device == NULL || !sn_parse_address(bus_id, &address))
        return NVML_ERROR_INVALID_ARGUMENT;
    index = sn_device_at(&address);
    return index == SN_NO_DEVICE ? NVML_ERROR_NOT_FOUND : give(index, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
