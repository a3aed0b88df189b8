/* The matrices of nvidia-smi topo. An error ends one where it stands. */
#ifndef SN_SMI_TOPO_MATRICES_H
#define SN_SMI_TOPO_MATRICES_H

#include <stdbool.h>

#include "../nvml/abi.h"

/* What lies between GPUs, NVLinks or what there is of PCIe. */
nvmlReturn_t smi_topology_matrix(bool nvlink);
nvmlReturn_t smi_p2p_matrix(unsigned int capability);

#endif
