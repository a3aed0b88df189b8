/* Where the image is, and its mapping. */
#ifndef SN_IMAGE_H
#define SN_IMAGE_H

#include "abi.h"
#include "image_layout.h"

/* Finds the image, checks and maps it. The mapping stays for ever; asked again, the same file gives the same mapping.
 * The caller closes *file. To be called under the lock of init.c. DRIVER_NOT_LOADED: there is none, or it is not an
 * image or was never published; LIB_RM_VERSION_MISMATCH: it is one of another format. */
nvmlReturn_t sn_find_image(const struct sn_image **image, int *file);
/* The first place on the search list that has an image file, open; -1 if there is none. */
int sn_open_image(void);

#endif
