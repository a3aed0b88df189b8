/* What a MIG device says, and reading a GPU instance: like access.h, with its own identity on top of its GPU's. */
#ifndef SN_MIG_H
#define SN_MIG_H

#include "access.h"

/* Ids of GPU instances: one for the whole, two halves, four quarters, eight eighths. */
#define SN_GPU_INSTANCE_IDS 15

/* A read of a GPU instance in progress. */
struct sn_instance {
    struct sn_read parent;
    const struct sn_gpu_instance *of;
    unsigned int id;
    unsigned int profile;
};

/* The place of a MIG device among those of its GPU that this process sees. */
nvmlReturn_t sn_mig_index(nvmlDevice_t handle, unsigned int *index);
/* The MIG device of this UUID on a visible GPU. NOT_FOUND: none; else why its GPU answers nothing. */
nvmlReturn_t sn_mig_by_uuid(const char *uuid, nvmlDevice_t *mig);
nvmlReturn_t sn_mig_text(nvmlDevice_t handle, bool uuid, char *out, unsigned int length);
nvmlReturn_t sn_mig_memory(nvmlDevice_t handle, nvmlMemory_v2_t *memory);
nvmlReturn_t sn_mig_bar1(nvmlDevice_t handle, nvmlBAR1Memory_t *memory);
/* What a MIG device has counted at a memory location. */
nvmlReturn_t sn_mig_errors(nvmlDevice_t handle, unsigned int location, unsigned long long *count);
/* INVALID_ARGUMENT if the handle is no GPU instance's. */
nvmlReturn_t sn_instance_open(struct sn_instance *instance, nvmlGpuInstance_t handle);
/* GPU_IS_LOST once the GPU instance is gone. Torn or not: ask sn_again(&instance->parent, …). */
nvmlReturn_t sn_instance_look(struct sn_instance *instance);
/* The handle of the GPU instance that a MIG device of GPU `index` is in. */
nvmlGpuInstance_t sn_instance_of(unsigned int index, const struct sn_mig *mig);
/* Copies the board's profile of this number; NOT_SUPPORTED if it has none. */
nvmlReturn_t sn_mig_profile(nvmlDevice_t device, unsigned int number, struct sn_mig_profile *copy);

#endif
