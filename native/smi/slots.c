/* The private table, as a consumer asks for it. */
#define _GNU_SOURCE
#include "slots.h"

nvmlReturn_t nvmlInternalGetExportTable(const void **out, const unsigned char guid[16]);

static nvmlReturn_t none(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}

smi_slot_fn *smi_slot(enum smi_slot slot)
{
    static const unsigned char guid[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                           0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    const void *table;
    size_t bytes;
    smi_slot_fn *function;

    if (nvmlInternalGetExportTable(&table, guid) != NVML_SUCCESS)
        return none;
    memcpy(&bytes, table, sizeof(bytes));
    if (bytes / sizeof(function) <= (size_t)slot)
        return none;
    memcpy(&function, (const char *)table + slot * sizeof(function), sizeof(function));
    return function;
}

nvmlReturn_t smi_slot_word(enum smi_slot slot, nvmlDevice_t device, unsigned int *out)
{
    nvmlReturn_t (*function)(nvmlDevice_t, unsigned int *) = (void *)smi_slot(slot);

    return function(device, out);
}
