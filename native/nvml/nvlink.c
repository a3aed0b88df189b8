/* NVLink state, neighbours and counters. */
#define _GNU_SOURCE
#include "nvlink.h"

#include "handles.h"
#include "pci.h"

#define VERSION_4 6 /* nvmlNvlinkVersion_t */

nvmlReturn_t sn_get_link(nvmlDevice_t device, unsigned int index, struct sn_link *link, uint64_t *tx_kib,
                         uint64_t *rx_kib)
{
    struct sn_read read;
    unsigned int links = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_look(&read);
        links = read.device->link_count;
        if (code == NVML_SUCCESS && index < SN_MAX_LINKS) {
            *link = read.device->link[index];
            if (link->present != 0 && tx_kib != NULL && rx_kib != NULL) {
                *tx_kib = sn_counter_now(&read, &read.device->link[index].tx_kib);
                *rx_kib = sn_counter_now(&read, &read.device->link[index].rx_kib);
            }
        }
    } while (sn_again(&read, &code));
    if (code != NVML_SUCCESS)
        return code;
    if (index >= SN_MAX_LINKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return index >= links || link->present == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int index, unsigned int *active)
{
    struct sn_link link;
    nvmlReturn_t code = active == NULL ? sn_bad_argument(device) : sn_get_link(device, index, &link, NULL, NULL);

    if (code == NVML_SUCCESS)
        *active = link.active != 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int index, unsigned int *version)
{
    struct sn_link link;
    nvmlReturn_t code = version == NULL ? sn_bad_argument(device) : sn_get_link(device, index, &link, NULL, NULL);

    if (code == NVML_SUCCESS)
        *version = link.version;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int index, unsigned int capability,
                                                       unsigned int *result)
{
    struct sn_link link;
    nvmlReturn_t code;

    if (capability >= NVML_NVLINK_CAP_COUNT || result == NULL)
        return sn_bad_argument(device);
    code = sn_get_link(device, index, &link, NULL, NULL);
    if (code == NVML_SUCCESS)
        *result = link.active != 0;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int index,
                                                             unsigned int *type)
{
    struct sn_link link;
    nvmlReturn_t code = type == NULL ? sn_bad_argument(device) : sn_get_link(device, index, &link, NULL, NULL);

    if (code == NVML_SUCCESS)
        *type = link.active != 0 ? link.remote_type : NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int index,
                                                             nvmlPciInfo_t *pci)
{
    struct sn_link link;
    nvmlReturn_t code = pci == NULL ? sn_bad_argument(device) : sn_get_link(device, index, &link, NULL, NULL);

    if (code != NVML_SUCCESS)
        return code;
    if (link.active == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(pci, 0, sizeof(*pci));
    pci->domain = link.remote_domain;
    pci->bus = link.remote_bus;
    pci->device = link.remote_device;
    pci->pciDeviceId = link.remote_device_id;
    sn_put_bus_ids(pci);
    return NVML_SUCCESS;
}

/* The unsuffixed name fills the struct that had no busId yet. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int index, sn_pci_info_v2 *pci)
{
    nvmlPciInfo_t from;
    nvmlReturn_t code = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, index, pci == NULL ? NULL : &from);

    if (code == NVML_SUCCESS) {
        memset(pci, 0, sizeof(*pci));
        memcpy(pci, &from, offsetof(sn_pci_info_v2, reserved));
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int index, unsigned int counter,
                                                         unsigned long long *count)
{
    struct sn_link link;
    nvmlReturn_t code;

    if (counter >= NVML_NVLINK_ERROR_COUNT || count == NULL)
        return sn_bad_argument(device);
    code = sn_get_link(device, index, &link, NULL, NULL);
    if (code != NVML_SUCCESS)
        return code;
    switch (counter) {
    case NVML_NVLINK_ERROR_DL_REPLAY:
        *count = link.replay_errors;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_RECOVERY:
        *count = link.recovery_errors;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_CRC_FLIT:
        *count = link.crc_errors;
        return NVML_SUCCESS;
    default:
        *count = 0;
        return NVML_SUCCESS;
    }
}

/* Bytes, as both counters of old boards were set up by default. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int index,
                                                               unsigned int counter, unsigned long long *received,
                                                               unsigned long long *sent)
{
    struct sn_link link;
    uint64_t tx_kib = 0;
    uint64_t rx_kib = 0;
    nvmlReturn_t code;

    if (counter > 1 || received == NULL || sent == NULL)
        return sn_bad_argument(device);
    code = sn_get_link(device, index, &link, &tx_kib, &rx_kib);
    if (code == NVML_SUCCESS) {
        *received = rx_kib * 1024;
        *sent = tx_kib * 1024;
    }
    return code;
}

/* All nodes since Hopper run their links at full width. */
NVML_EXPORT nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int *mode)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (mode == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        struct sn_link link;
        if (sn_get_link(sn_handle(sn_view.device[visible]), 0, &link, NULL, NULL) != NVML_SUCCESS ||
            link.version < VERSION_4)
            continue;
        *mode = 0;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}
