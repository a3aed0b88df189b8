/* Setters that have another way in, through the private table. */
#ifndef SN_SETTERS_H
#define SN_SETTERS_H

#include "access.h"

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode);
/* What a reset leaves: no volatile error, the pending ECC mode in force. IN_USE while a process is on the GPU. */
nvmlReturn_t sn_reset_gpu(nvmlDevice_t device);
/* Slots 244 and 250. */
nvmlReturn_t sn_set_sparse_operation_mode(nvmlDevice_t device, unsigned int mode);

#endif
