/* The parts of nvidia-smi nvlink. */
#ifndef SN_SMI_NVLINK_H
#define SN_SMI_NVLINK_H

#include <limits.h>

#include "smi.h"

#define SMI_ALL_LINKS UINT_MAX

/* In the order in which they are shown. */
enum smi_link_part {
    SMI_LINK_STATUS,
    SMI_LINK_CAPABILITIES,
    SMI_LINK_REMOTE_BUS_IDS,
    SMI_LINK_REMOTE_LINKS,
    SMI_LINK_ERRORS,
    SMI_LINK_PARTS
};

/* One GPU, and which of its links are asked about. */
struct smi_links {
    nvmlDevice_t device;
    unsigned int count;
    unsigned int only; /* or SMI_ALL_LINKS */
};

/* 0 where the GPU does not say. */
unsigned int smi_count_links(nvmlDevice_t device);
/* An error, after a line that says it, ends the view. */
nvmlReturn_t smi_print_links(enum smi_link_part part, const struct smi_links *links);

#endif
