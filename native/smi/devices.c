/* Which GPUs a command is about: all of them, or those that -i names. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slots.h"
#include "smi.h"

#define MAX_IDS 256
#define SERIAL_BYTES 30

/* What -i lists: indices, UUIDs, serial numbers, PCI bus ids. */
struct ids {
    char *copy;
    const char *text[MAX_IDS];
    unsigned int count;
};

static void split(const char *text, struct ids *ids)
{
    char *left;

    ids->count = 0;
    ids->copy = strdup(text);
    if (ids->copy == NULL)
        return;
    for (char *id = strtok_r(ids->copy, ",", &left); id != NULL; id = strtok_r(NULL, ",", &left))
        if (ids->count < MAX_IDS)
            ids->text[ids->count++] = id;
}

static bool is_index(const char *id, unsigned int count, unsigned int *index)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(id, &end, 0);
    if (errno != 0 || end == id || *end != '\0' || number >= count)
        return false;
    *index = (unsigned int)number;
    return true;
}

/* Whether the GPU of this index is where `id` says. */
static nvmlReturn_t is_at(unsigned int index, const char *id, bool *found)
{
    nvmlReturn_t (*parse)(const char *, unsigned int *, unsigned int *, unsigned int *, unsigned int *) =
        (void *)smi_slot(SMI_SLOT_PARSE_BUS_ID);
    nvmlReturn_t (*address)(unsigned int, unsigned int *, unsigned int *, unsigned int *) =
        (void *)smi_slot(SMI_SLOT_ADDRESS);
    unsigned int wanted[4];
    unsigned int at[3];
    nvmlReturn_t code = parse(id, &wanted[0], &wanted[1], &wanted[2], &wanted[3]);

    if (code == NVML_SUCCESS)
        code = address(index, &at[0], &at[1], &at[2]);
    *found = code == NVML_SUCCESS && memcmp(wanted, at, sizeof(at)) == 0 && wanted[3] == 0;
    return code;
}

static nvmlReturn_t is_called(unsigned int index, const char *id, bool *found)
{
    char uuid[SMI_NAME_BYTES];
    char serial[SERIAL_BYTES];
    nvmlDevice_t device;
    nvmlReturn_t code = nvmlDeviceGetHandleByIndex_v2(index, &device);

    if (code == NVML_ERROR_NO_PERMISSION)
        return NVML_SUCCESS;
    if (code != NVML_SUCCESS)
        return code;
    *found = (nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) == NVML_SUCCESS && strcmp(uuid, id) == 0) ||
             (nvmlDeviceGetSerial(device, serial, sizeof(serial)) == NVML_SUCCESS && strcmp(serial, id) == 0);
    return NVML_SUCCESS;
}

/* 0, or the exit code after a line: the GPU could not be asked whether it is meant. */
static int is_meant(const struct ids *ids, unsigned int index, unsigned int count, bool *found)
{
    *found = false;
    for (unsigned int i = 0; i < ids->count && !*found; i++) {
        bool bus_id = strchr(ids->text[i], ':') != NULL;
        char own_bus_id[SMI_BUS_ID_BYTES];
        unsigned int wanted;
        nvmlReturn_t code;
        if (!bus_id && is_index(ids->text[i], count, &wanted)) {
            *found = wanted == index;
            continue;
        }
        code = bus_id ? is_at(index, ids->text[i], found) : is_called(index, ids->text[i], found);
        if (code == NVML_SUCCESS)
            continue;
        smi_bus_id(index, own_bus_id);
        printf("Problem with GPU %s: %s\n", own_bus_id,
               bus_id ? "Invalid PCI bus id format. Try format [domain:]bus:device.function E.g. 0:2:0.0"
                      : smi_handle_words(code));
        return SMI_FAILED;
    }
    return 0;
}

/* 0, or the exit code after a line. */
static int add(struct smi_devices *devices, unsigned int index, bool *hidden)
{
    char bus_id[SMI_BUS_ID_BYTES];
    nvmlReturn_t code = nvmlDeviceGetHandleByIndex_v2(index, &devices->handle[devices->count]);

    if (code == NVML_SUCCESS) {
        devices->count++;
        return 0;
    }
    if (code == NVML_ERROR_NO_PERMISSION)
        *hidden = true;
    if (code == NVML_ERROR_NO_PERMISSION || code == NVML_ERROR_NOT_FOUND)
        return 0;
    smi_bus_id(index, bus_id);
    printf("Unable to determine the device handle for GPU%s: %s\n", bus_id, smi_handle_words(code));
    return smi_exit_code(code);
}

static int add_all(struct smi_devices *devices, const struct ids *ids, unsigned int count)
{
    bool hidden = false;

    for (unsigned int i = 0; i < count; i++) {
        bool found = true;
        int status = ids == NULL ? 0 : is_meant(ids, i, count, &found);
        if (status == 0 && found)
            status = add(devices, i, &hidden);
        if (status != 0)
            return status;
    }
    if (devices->count != 0)
        return 0;
    printf("No devices were found%s\n",
           hidden ? ". Please make sure /dev/nvidia* files are readable by current user." : "");
    return hidden ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_NOT_FOUND;
}

int smi_find_devices(const char *ids, struct smi_devices *devices)
{
    struct ids named;
    unsigned int count;
    int status;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);

    devices->count = 0;
    if (code != NVML_SUCCESS) {
        printf("Unable to determine the number of GPUs");
        return smi_exit_code(code);
    }
    if (ids == NULL || count == 0)
        return add_all(devices, NULL, count);
    split(ids, &named);
    if (named.count == 0) {
        printf("Failed to parse device string on command line");
        status = SMI_FAILED;
    } else {
        status = add_all(devices, &named, count);
    }
    free(named.copy);
    return status;
}
