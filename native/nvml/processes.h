/* The processes of a device, for the public lists and the private ones. */
#ifndef SN_PROCESSES_H
#define SN_PROCESSES_H

#include "access.h"

enum { SN_PROCESS_COMPUTE = 1, SN_PROCESS_GRAPHICS = 2, SN_PROCESS_MPS = 4 };

/* Copies those processes of the device whose type is in `types`, at most SN_MAX_PROCESSES; of a MIG handle only its
 * own. */
nvmlReturn_t sn_get_processes(nvmlDevice_t device, unsigned int types, struct sn_process *out, unsigned int *count);

#endif
