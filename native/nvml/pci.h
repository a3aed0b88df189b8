/* PCI addresses as NVML writes them. */
#ifndef SN_PCI_H
#define SN_PCI_H

#include "abi.h"

/* Everything NVML tells about the address but the version tag. */
nvmlReturn_t sn_get_pci(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci);
/* Writes DDDDDDDD:BB:DD.0, 17 bytes with the end. */
void sn_put_bus_id(char *out, unsigned int domain, unsigned int bus, unsigned int device);
/* Writes both texts of an address that is filled in and whose texts are clear. */
void sn_put_bus_ids(nvmlPciInfo_t *pci);

#endif
