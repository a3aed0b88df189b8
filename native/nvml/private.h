/* Slots of the private table that have a file of their own. */
#ifndef SN_PRIVATE_H
#define SN_PRIVATE_H

#include "access.h"

#define SN_PRIVATE_NAME_BYTES 4096

/* One row of the lists behind slots 213 to 215. */
struct sn_private_process {
    nvmlProcessDetail_v1_t detail;
    char name[SN_PRIVATE_NAME_BYTES];
};
_Static_assert(sizeof(struct sn_private_process) == 4128, "as nvidia-smi strides");

/* Slot 81, for our own nvidia-smi too: the bus id of a visible index as text. */
nvmlReturn_t sn_bus_id_of_index(unsigned int index, char *out, unsigned int length);
nvmlReturn_t sn_private_compute(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_mps(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_graphics(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_utilization(nvmlDevice_t device, unsigned long long last_seen_us, unsigned int *value_type,
                                    unsigned int *count, void *samples);

#endif
