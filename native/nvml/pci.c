/* The PCI address of a device in the four layouts that callers of different age expect, and the link. */
#define _GNU_SOURCE
#include "access.h"
#include "pci.h"

/* Two upper case hexadecimal digits. */
static char *put_byte(char *out, unsigned int value)
{
    static const char hex[] = "0123456789ABCDEF";

    out[0] = hex[value >> 4 & 15];
    out[1] = hex[value & 15];
    return out + 2;
}

void sn_put_bus_id(char *out, unsigned int domain, unsigned int bus, unsigned int device)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        out = put_byte(out, domain >> shift);
    *out++ = ':';
    out = put_byte(out, bus);
    *out++ = ':';
    out = put_byte(out, device);
    memcpy(out, ".0", 3);
}

void sn_put_bus_ids(nvmlPciInfo_t *pci)
{
    sn_put_bus_id(pci->busId, pci->domain, pci->bus, pci->device);
    memcpy(pci->busIdLegacy, pci->busId + 4, sizeof(pci->busIdLegacy)); /* a domain of four digits */
}

nvmlReturn_t sn_get_pci(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    static const struct sn_want wants[] = {
        {SN_WORD, offsetof(struct sn_device, pci_domain)},       {SN_WORD, offsetof(struct sn_device, pci_bus)},
        {SN_WORD, offsetof(struct sn_device, pci_device)},       {SN_WORD, offsetof(struct sn_device, pci_device_id)},
        {SN_WORD, offsetof(struct sn_device, pci_subsystem_id)}, {SN_WORD, offsetof(struct sn_device, pci_base_class)},
        {SN_WORD, offsetof(struct sn_device, pci_sub_class)},
    };
    uint64_t values[7];
    nvmlReturn_t code = sn_get_cells(device, wants, 7, values);

    if (code != NVML_SUCCESS)
        return code;
    pci->domain = (unsigned int)values[0];
    pci->bus = (unsigned int)values[1];
    pci->device = (unsigned int)values[2];
    pci->pciDeviceId = (unsigned int)values[3];
    pci->pciSubSystemId = (unsigned int)values[4];
    pci->baseClass = (unsigned int)values[5];
    pci->subClass = (unsigned int)values[6];
    memset(pci->busId, 0, sizeof(pci->busId));
    sn_put_bus_id(pci->busId, pci->domain, pci->bus, pci->device);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    nvmlPciInfoExt_v1_t copy;
    nvmlReturn_t code;

    if (pci == NULL)
        return sn_bad_argument(device);
    code = sn_get_pci(device, &copy);
    if (code != NVML_SUCCESS)
        return code;
    if (pci->version != SN_TAG(nvmlPciInfoExt_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    copy.version = pci->version;
    *pci = copy;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlPciInfoExt_v1_t from;
    nvmlReturn_t code;

    if (pci == NULL)
        return sn_bad_argument(device);
    code = sn_get_pci(device, &from);
    if (code != NVML_SUCCESS)
        return code;
    memset(pci, 0, sizeof(*pci));
    pci->domain = from.domain;
    pci->bus = from.bus;
    pci->device = from.device;
    pci->pciDeviceId = from.pciDeviceId;
    pci->pciSubSystemId = from.pciSubSystemId;
    sn_put_bus_ids(pci);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, sn_pci_info_v2 *pci)
{
    nvmlPciInfo_t from;
    nvmlReturn_t code = nvmlDeviceGetPciInfo_v3(device, pci == NULL ? NULL : &from);

    if (code == NVML_SUCCESS) {
        memset(pci, 0, sizeof(*pci));
        memcpy(pci, &from, offsetof(sn_pci_info_v2, reserved));
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, sn_pci_info_v1 *pci)
{
    nvmlPciInfo_t from;
    nvmlReturn_t code = nvmlDeviceGetPciInfo_v3(device, pci == NULL ? NULL : &from);

    if (code == NVML_SUCCESS)
        memcpy(pci, &from, sizeof(*pci));
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *kib_per_s)
{
    if (counter == NVML_PCIE_UTIL_TX_BYTES)
        return sn_get_gauge(device, offsetof(struct sn_device, pcie_tx_throughput_kbps), kib_per_s);
    if (counter == NVML_PCIE_UTIL_RX_BYTES)
        return sn_get_gauge(device, offsetof(struct sn_device, pcie_rx_throughput_kbps), kib_per_s);
    return sn_bad_argument(device);
}

/* Megatransfers a second of one lane, by generation. */
static const unsigned int generation_mbps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *mbps)
{
    unsigned int generation;
    nvmlReturn_t code;

    if (mbps == NULL)
        return sn_bad_argument(device);
    code = sn_get_word(device, offsetof(struct sn_device, pcie_current_link_gen), &generation);
    if (code == NVML_SUCCESS && generation >= sizeof(generation_mbps) / sizeof(generation_mbps[0]))
        return NVML_ERROR_UNKNOWN;
    if (code == NVML_SUCCESS)
        *mbps = generation_mbps[generation];
    return code;
}

/* Answers an NVML_PCIE_LINK_MAX_SPEED, which counts like the generations. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int *speed)
{
    return sn_get_word(device, offsetof(struct sn_device, pcie_max_link_gen), speed);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned int *type)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED || type == NULL)
        return type == NULL ? sn_bad_argument(device) : code;
    *type = 2; /* NVML_BUS_TYPE_PCIE */
    return NVML_SUCCESS;
}
