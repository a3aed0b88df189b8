/* PCI addresses as NVML writes them. */
#ifndef SN_PCI_H
#define SN_PCI_H

#include "abi.h"

/* Everything NVML tells about the address but the version tag. */
nvmlReturn_t sn_get_pci(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci);
/* Writes DOMAIN:BB:DD.0 with so many digits of domain: 16 bytes with four, 20 with eight. */
void sn_put_bus_id(char *out, unsigned int domain_digits, unsigned int domain, unsigned int bus, unsigned int device);

#endif
