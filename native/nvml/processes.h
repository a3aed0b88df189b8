/* The processes of a device, for the public lists and the private ones. */
#ifndef SN_PROCESSES_H
#define SN_PROCESSES_H

#include "access.h"

enum { SN_PROCESS_COMPUTE = 1, SN_PROCESS_GRAPHICS = 2, SN_PROCESS_MPS = 4 };

/* A process without its name, which is all but a few bytes of it: lists have to fit on small stacks. */
struct sn_usage {
    uint32_t pid;
    uint32_t type;
    uint64_t used_bytes;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t sm_util;
    uint32_t mem_util;
    uint32_t enc_util;
    uint32_t dec_util;
};

/* Copies those processes of the device whose type is in `types`, at most SN_MAX_PROCESSES; of a MIG handle only its
 * own. */
nvmlReturn_t sn_get_processes(nvmlDevice_t device, unsigned int types, struct sn_process *out, unsigned int *count);
/* The same without names, with the percentages of this moment: what the profile says of a process is its share at full
 * load; where it says nothing of any, they share what the device as a whole does. */
nvmlReturn_t sn_get_usage(nvmlDevice_t device, unsigned int types, struct sn_usage *out, unsigned int *count);

#endif
