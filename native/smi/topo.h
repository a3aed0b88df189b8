/* The matrices of nvidia-smi topo. An error ends one where it stands. */
#ifndef SN_SMI_TOPO_H
#define SN_SMI_TOPO_H

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
/* What lies between GPUs, NVLinks or what there is of PCIe. */
nvmlReturn_t smi_topology_matrix(bool nvlink);
nvmlReturn_t smi_p2p_matrix(unsigned int capability);

#endif
