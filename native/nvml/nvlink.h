/* The NVLinks of a device. */
#ifndef SN_NVLINK_H
#define SN_NVLINK_H

#include "access.h"

/* Copies one link, its counters as of now in `tx_kib` and `rx_kib`. INVALID_ARGUMENT beyond the device's links;
 * NOT_SUPPORTED where a place has no link, or the device has none at all. */
nvmlReturn_t sn_get_link(nvmlDevice_t device, unsigned int index, struct sn_link *link, uint64_t *tx_kib,
                         uint64_t *rx_kib);

#endif
