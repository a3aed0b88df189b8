/* What a handle is, and which devices there are handles of. */
#ifndef SN_HANDLES_H
#define SN_HANDLES_H

#include <stdbool.h>

#include "abi.h"
#include "image_layout.h"

#define SN_NO_DEVICE 255u

/* A handle's address tells device, identity and MIG device; its content means nothing but must be readable. */
struct nvmlDevice_st {
    uint64_t reserved;
};

extern struct nvmlDevice_st sn_handles[SN_MAX_DEVICES][SN_EPOCHS];
extern struct nvmlDevice_st sn_mig_handles[SN_MAX_DEVICES][SN_MAX_MIG_DEVICES][SN_EPOCHS];

/* What the first nvmlInit fixed: image is null while the library is not initialised. */
struct sn_view {
    const struct sn_image *image;
    unsigned int count;
    bool by_files;                   /* names in /dev have a say in it */
    uint8_t device[SN_MAX_DEVICES];  /* by visible index */
    uint8_t visible[SN_MAX_DEVICES]; /* by device; SN_NO_DEVICE where it is not visible */
    uint32_t epoch[SN_MAX_DEVICES];  /* by device, as of nvmlInit */
};

extern struct sn_view sn_view;

/* The handle of a device by its index in the image, with the identity it had at nvmlInit. */
static inline nvmlDevice_t sn_handle(unsigned int index)
{
    return &sn_handles[index][sn_view.epoch[index] % SN_EPOCHS];
}

/* True if the address is one of a MIG device's handles, whether that device exists or not. */
static inline bool sn_is_mig_handle(nvmlDevice_t handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)sn_mig_handles;

    return at < sizeof(sn_mig_handles) && at % sizeof(struct nvmlDevice_st) == 0;
}

#endif
