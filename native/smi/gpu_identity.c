/* Columns that say which GPU it is, and where. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include "sources.h"

typedef nvmlReturn_t text_getter(nvmlDevice_t device, char *out, unsigned int length);

text_getter nvmlDeviceGetVbiosVersion;
text_getter nvmlDeviceGetInforomImageVersion;
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);

nvmlReturn_t smi_not_here(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    (void)row;
    (void)which;
    (void)out;
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t smi_timestamp(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    struct timeval now;
    struct tm local;
    size_t length;

    (void)row;
    (void)which;
    gettimeofday(&now, NULL);
    length = strftime(out, SMI_CELL_BYTES, "%Y/%m/%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    snprintf(out + length, SMI_CELL_BYTES - length, ".%03u", (unsigned int)(now.tv_usec / 1000));
    return NVML_SUCCESS;
}

nvmlReturn_t smi_driver(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    (void)row;
    (void)which;
    return nvmlSystemGetDriverVersion(out, SMI_VERSION_BYTES);
}

nvmlReturn_t smi_count(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    unsigned int count;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);

    (void)row;
    (void)which;
    if (code == NVML_SUCCESS)
        smi_decimal(count, out);
    return code;
}

static nvmlReturn_t get_pci(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    pci->version = sizeof(*pci) | 1u << 24;
    return nvmlDeviceGetPciInfoExt(device, pci);
}

nvmlReturn_t smi_identity(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    nvmlPciInfoExt_v1_t pci;
    nvmlReturn_t code;

    switch (which) {
    case SMI_NAME:
        return nvmlDeviceGetName(row->device, out, SMI_CELL_BYTES);
    case SMI_SERIAL:
        return nvmlDeviceGetSerial(row->device, out, SMI_CELL_BYTES);
    case SMI_UUID:
        return nvmlDeviceGetUUID(row->device, out, SMI_CELL_BYTES);
    case SMI_VBIOS:
        return nvmlDeviceGetVbiosVersion(row->device, out, SMI_CELL_BYTES);
    case SMI_INFOROM_IMAGE:
        return nvmlDeviceGetInforomImageVersion(row->device, out, SMI_CELL_BYTES);
    case SMI_INFOROM_OEM:
        return nvmlDeviceGetInforomVersion(row->device, NVML_INFOROM_OEM, out, SMI_CELL_BYTES);
    case SMI_INFOROM_ECC:
        return nvmlDeviceGetInforomVersion(row->device, NVML_INFOROM_ECC, out, SMI_CELL_BYTES);
    case SMI_INFOROM_POWER:
        return nvmlDeviceGetInforomVersion(row->device, NVML_INFOROM_POWER, out, SMI_CELL_BYTES);
    default:
        code = get_pci(row->device, &pci);
        if (code == NVML_SUCCESS)
            snprintf(out, SMI_CELL_BYTES, "%s", pci.busId);
        return code;
    }
}

nvmlReturn_t smi_pci(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    nvmlPciInfoExt_v1_t pci = {0};
    nvmlReturn_t code = get_pci(device, &pci);
    const unsigned int parts[] = {
        [SMI_PCI_DOMAIN] = pci.domain,
        [SMI_PCI_BUS] = pci.bus,
        [SMI_PCI_DEVICE] = pci.device,
        [SMI_PCI_BASE_CLASS] = pci.baseClass,
        [SMI_PCI_SUB_CLASS] = pci.subClass,
        [SMI_PCI_ID] = pci.pciDeviceId,
        [SMI_PCI_SUBSYSTEM_ID] = pci.pciSubSystemId,
    };

    *out = parts[which];
    return code;
}

nvmlReturn_t smi_compute_capability(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES])
{
    int major;
    int minor;
    nvmlReturn_t code = nvmlDeviceGetCudaComputeCapability(row->device, &major, &minor);

    (void)which;
    if (code == NVML_SUCCESS)
        snprintf(out, SMI_CELL_BYTES, "%d.%d", major, minor);
    return code;
}

nvmlReturn_t smi_slot_number(nvmlDevice_t device, unsigned int which, unsigned long long *out)
{
    unsigned int word;
    nvmlReturn_t code = smi_slot_word((enum smi_slot)which, device, &word);

    if (code == NVML_SUCCESS)
        *out = word;
    return code;
}
