/* Columns of releases whose nvidia-smi asks in ways that are not known: straight from the image. */
#define _GNU_SOURCE
#include "sources.h"

nvmlReturn_t smi_word_cell(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int word = 0;
    nvmlReturn_t code = sn_get_word(device, which, &word);

    *out = word;
    return code;
}

nvmlReturn_t smi_gauge_cell(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int value = 0;
    nvmlReturn_t code = sn_get_gauge(device, which, &value);

    *out = value;
    return code;
}

nvmlReturn_t smi_wide_cell(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    return sn_get_wide(device, which, out);
}

nvmlReturn_t smi_counter_cell(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    return sn_get_counter(device, which, out);
}

nvmlReturn_t smi_chassis(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    (void)which;
    return sn_get_text(row->device, offsetof(struct sn_device, platform_chassis_serial_number),
                       sizeof(((struct sn_device *)NULL)->platform_chassis_serial_number.value), out, SMI_CELL_BYTES);
}
