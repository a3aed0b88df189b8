/* Reading one MIG device: like access.h, with the MIG device's own identity on top of its GPU's. */
#ifndef SN_MIG_H
#define SN_MIG_H

#include "access.h"

struct sn_mig_read {
    struct sn_read parent;
    const struct sn_mig *mig;
    unsigned int slot;
    unsigned int epoch;
};

/* INVALID_ARGUMENT if the handle is no MIG device's. */
nvmlReturn_t sn_mig_open(struct sn_mig_read *read, nvmlDevice_t handle);
/* GPU_IS_LOST once the MIG device is gone. Torn or not: ask sn_again(&read->parent, …). */
nvmlReturn_t sn_mig_look(struct sn_mig_read *read);
/* True if the address is one of a MIG device's handles, whether that device exists or not. */
bool sn_is_mig_handle(nvmlDevice_t handle);
/* The MIG device of this UUID on a visible GPU, or null. */
nvmlDevice_t sn_mig_by_uuid(const char *uuid);

#endif
