/* The library's life: one reference count, one view, one lock for both. */
#ifndef SN_INIT_H
#define SN_INIT_H

#include "abi.h"
#include "image_layout.h"

/* The image for functions that also answer before nvmlInit; finds it if need be. */
nvmlReturn_t sn_image_before_init(const struct sn_image **image);
/* The lock of what init and shutdown change. A child forked while it was held can take it. */
void sn_lock(void);
void sn_unlock(void);

#endif
