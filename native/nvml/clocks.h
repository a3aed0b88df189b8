/* The clocks that a device supports. */
#ifndef SN_CLOCKS_H
#define SN_CLOCKS_H

#include "access.h"

/* Copies the supported memory clocks, fastest first, each with its graphics clocks; NOT_SUPPORTED if there are none. */
nvmlReturn_t sn_copy_clocks(nvmlDevice_t device, struct sn_clocks copy[SN_MAX_MEMORY_CLOCKS], unsigned int *count);

#endif
