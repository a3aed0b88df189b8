/* nvidia-smi topo -p2p: whether GPUs reach one another. */
#define _GNU_SOURCE
#include "topo_matrices.h"

#include <stdio.h>

#include "topo_gpus.h"

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, unsigned int capability,
                                    unsigned int *status);

static nvmlReturn_t print_row(const struct smi_topology *gpus, const struct smi_topology_gpu *from,
                              unsigned int capability)
{
    static const char *const words[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
    unsigned int status[SN_MAX_DEVICES] = {0};

    for (unsigned int i = 0; i < gpus->count; i++) {
        nvmlReturn_t code = NVML_SUCCESS;
        if (&gpus->gpu[i] != from)
            code = nvmlDeviceGetP2PStatus(from->device, gpus->gpu[i].device, capability, &status[i]);
        if (code != NVML_SUCCESS)
            return code;
    }
    printf(" GPU%u\t", from->index);
    for (unsigned int i = 0; i < gpus->count; i++) {
        const char *word = status[i] < sizeof(words) / sizeof(words[0]) ? words[status[i]] : "U";
        printf("%s\t", &gpus->gpu[i] == from ? "X" : word);
    }
    putchar('\n');
    return NVML_SUCCESS;
}

nvmlReturn_t smi_p2p_matrix(unsigned int capability)
{
    struct smi_topology gpus;
    nvmlReturn_t code = smi_find_topology(&gpus);

    if (code != NVML_SUCCESS)
        return code;
    printf(" \t\033[4m");
    for (unsigned int i = 0; i < gpus.count; i++)
        printf("GPU%u\t", gpus.gpu[i].index);
    puts("\033[0m");
    if (!gpus.complete)
        return NVML_ERROR_NO_PERMISSION;
    for (unsigned int i = 0; i < gpus.count; i++) {
        code = print_row(&gpus, &gpus.gpu[i], capability);
        if (code != NVML_SUCCESS)
            return code;
    }
    puts("\nLegend:\n\n"
         "  X    = Self\n"
         "  OK   = Status Ok\n"
         "  CNS  = Chipset not supported\n"
         "  GNS  = GPU not supported\n"
         "  TNS  = Topology not supported\n"
         "  NS   = Not supported\n"
         "  U    = Unknown");
    return NVML_SUCCESS;
}
