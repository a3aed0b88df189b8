/* Which devices there are, and who each of them is. */
#define _GNU_SOURCE
#include <stdio.h>

#include "../nvml/lookup.h"
#include "driver_api.h"

/* DDDD:BB:DD.F and its NUL. */
#define BUS_ID_BYTES 13

CUDA_EXPORT CUresult cuDeviceGetCount(int *count)
{
    const struct sn_ordinals *ordinals = sn_ordinals();

    if (ordinals == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)ordinals->count;
    return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    nvmlDevice_t handle;
    CUresult code = sn_device(ordinal, &handle);

    if (code == CUDA_SUCCESS && device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        *device = ordinal;
    return code;
}

/* A name that is too long is cut. */
CUDA_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    char whole[SN_LONGEST_TEXT + 1];
    nvmlDevice_t handle;
    CUresult code = sn_device(device, &handle);

    if (code != CUDA_SUCCESS)
        return code;
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    code = sn_result(nvmlDeviceGetName(handle, whole, sizeof(whole)));
    if (code != CUDA_SUCCESS)
        return code;
    snprintf(name, (size_t)length, "%s", whole);
    return CUDA_SUCCESS;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sn_uuid_bytes(const char *text, unsigned char bytes[SN_UUID_BYTES])
{
    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    text += 4;
    for (unsigned int i = 0; i < SN_UUID_BYTES; i++, text += 2) {
        if (*text == '-')
            text++;
        if (digit(text[0]) < 0 || digit(text[1]) < 0)
            return false;
        bytes[i] = (unsigned char)(digit(text[0]) << 4 | digit(text[1]));
    }
    return *text == '\0';
}

CUDA_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    char text[SN_LONGEST_TEXT + 1];
    nvmlDevice_t handle;
    CUresult code = sn_device(device, &handle);

    if (code != CUDA_SUCCESS)
        return code;
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    code = sn_result(nvmlDeviceGetUUID(handle, text, sizeof(text)));
    if (code == CUDA_SUCCESS && !sn_uuid_bytes(text, uuid->bytes))
        return CUDA_ERROR_NOT_SUPPORTED;
    return code;
}

/* It differs for MIG devices alone, which are not enumerated. */
CUDA_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

/* What a program can have: the frame buffer without what the driver reserves. */
CUDA_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    static const struct sn_want wants[] = {
        {SN_WIDE, offsetof(struct sn_device, memory_total_bytes)},
        {SN_WIDE, offsetof(struct sn_device, memory_reserved_bytes)},
    };
    uint64_t values[2];
    nvmlDevice_t handle;
    CUresult code = sn_device(device, &handle);

    if (code != CUDA_SUCCESS)
        return code;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    code = sn_result(sn_get_cells(handle, wants, 2, values));
    if (code == CUDA_SUCCESS)
        *bytes = (size_t)(values[0] > values[1] ? values[0] - values[1] : 0);
    return code;
}

/* As in CUDA 2.0, when a size had 32 bits. */
CUDA_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t whole;
    CUresult code = cuDeviceTotalMem_v2(bytes == NULL ? NULL : &whole, device);

    if (code == CUDA_SUCCESS)
        *bytes = whole > UINT32_MAX ? UINT32_MAX : (unsigned int)whole;
    return code;
}

static CUresult address_of(nvmlDevice_t handle, struct sn_address *address)
{
    static const struct sn_want wants[] = {
        {SN_WORD, offsetof(struct sn_device, pci_domain)},
        {SN_WORD, offsetof(struct sn_device, pci_bus)},
        {SN_WORD, offsetof(struct sn_device, pci_device)},
    };
    uint64_t values[3];
    CUresult code = sn_result(sn_get_cells(handle, wants, 3, values));

    if (code == CUDA_SUCCESS)
        *address = (struct sn_address){(unsigned int)values[0], (unsigned int)values[1], (unsigned int)values[2], 0};
    return code;
}

CUDA_EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    struct sn_address address;
    nvmlDevice_t handle;
    CUresult code = sn_device(device, &handle);

    if (code != CUDA_SUCCESS)
        return code;
    if (text == NULL || length < BUS_ID_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    code = address_of(handle, &address);
    if (code != CUDA_SUCCESS)
        return code;
    snprintf(text, (size_t)length, "%04X:%02X:%02X.0", address.domain, address.bus, address.device);
    return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    const struct sn_ordinals *ordinals = sn_ordinals();
    struct sn_address wanted;
    struct sn_address address;

    if (ordinals == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device == NULL || text == NULL || !sn_parse_address(text, &wanted))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; wanted.function == 0 && i < ordinals->count; i++) {
        if (address_of(ordinals->device[i], &address) == CUDA_SUCCESS && address.domain == wanted.domain &&
            address.bus == wanted.bus && address.device == wanted.device) {
            *device = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}
