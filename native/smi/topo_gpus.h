/* The GPUs that a matrix of nvidia-smi topo is about. */
#ifndef SN_SMI_TOPO_GPUS_H
#define SN_SMI_TOPO_GPUS_H

#include "smi.h"

/* A GPU of a matrix. */
struct smi_topology_gpu {
    nvmlDevice_t device;
    unsigned int index;
    char bus_id[sizeof(((nvmlPciInfo_t *)NULL)->busId)]; /* empty until it was asked for */
};

/* Those that may be seen. */
struct smi_topology {
    unsigned int count;
    bool complete; /* none is hidden */
    struct smi_topology_gpu gpu[SN_MAX_DEVICES];
};

nvmlReturn_t smi_find_topology(struct smi_topology *gpus);

#endif
