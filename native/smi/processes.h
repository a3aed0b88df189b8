/* The processes that nvidia-smi shows of a device. */
#ifndef SN_SMI_PROCESSES_H
#define SN_SMI_PROCESSES_H

#include "../nvml/processes.h"

#define SMI_UNKNOWN_BYTES UINT64_MAX
#define SMI_OWN_NAME_BYTES (sizeof(((struct sn_process *)0)->name) + 1)

/* What is done with each; `types` are the lists it is in. */
typedef void smi_process_fn(void *context, const struct sn_process *process, unsigned int types);

/* Every process of the device, by pid, those of a partitioned GPU by its MIG devices. How many there are. */
unsigned int smi_each_process(nvmlDevice_t device, smi_process_fn *each, void *context);
/* "C", "C+G" … */
const char *smi_process_type(unsigned int types);
/* Its name, terminated. */
void smi_process_name(const struct sn_process *process, char out[SMI_OWN_NAME_BYTES]);

#endif
