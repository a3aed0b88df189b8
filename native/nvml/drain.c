/* Taking GPUs out of service: none is being drained, and nobody may drain one. */
#define _GNU_SOURCE
#include "access.h"
#include "lookup.h"

/* Callers fill the numbers of the address and leave its texts. */
static nvmlReturn_t is_here(const nvmlPciInfo_t *pci)
{
    struct sn_address address;

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    address = (struct sn_address){pci->domain, pci->bus, pci->device, 0};
    return sn_device_at(&address) == SN_NO_DEVICE ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

static nvmlReturn_t forbidden(const nvmlPciInfo_t *pci)
{
    nvmlReturn_t code = is_here(pci);

    return code == NVML_SUCCESS ? NVML_ERROR_NO_PERMISSION : code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *pci, unsigned int *draining)
{
    nvmlReturn_t code = is_here(pci);

    if (code == NVML_SUCCESS && draining == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *draining = 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t *pci, unsigned int drain)
{
    (void)drain;
    return forbidden(pci);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_t *pci)
{
    return forbidden(pci);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_t *pci, unsigned int gpu_state, unsigned int link_state)
{
    (void)gpu_state;
    (void)link_state;
    return forbidden(pci);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_t *pci)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    return pci == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NO_PERMISSION;
}
