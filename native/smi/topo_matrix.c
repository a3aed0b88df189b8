/* nvidia-smi topo -m: what lies between GPUs, and what is near them. */
#define _GNU_SOURCE
#include "topo_matrices.h"

#include <stdio.h>

#include "slots.h"
#include "topo_gpus.h"

#define FIRST_WITH_NVLINK 4 /* NVML_DEVICE_ARCH_PASCAL */
#define MOST_LINKS 18
#define FIELD_SWITCH_LINKS 147
#define MASK_WORDS 20
#define WORD_BITS 64
#define LIST_BYTES 64
#define LONGEST_LIST 10
#define CELL_BYTES 16

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture);
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int *brand);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                         unsigned int scope);
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node);

static nvmlReturn_t identify(struct smi_topology_gpu *gpu)
{
    nvmlPciInfo_t pci;
    unsigned int brand;
    nvmlReturn_t code = nvmlDeviceGetBrand(gpu->device, &brand);

    if (code == NVML_SUCCESS)
        code = nvmlDeviceGetPciInfo_v3(gpu->device, &pci);
    if (code == NVML_SUCCESS)
        memcpy(gpu->bus_id, pci.busId, sizeof(gpu->bus_id));
    return code;
}

/* How many of its links lead to a switch; 0 if it does not say. */
static unsigned int switch_links(nvmlDevice_t device)
{
    nvmlFieldValue_t field = {.fieldId = FIELD_SWITCH_LINKS};
    nvmlReturn_t code = nvmlDeviceGetFieldValues(device, 1, &field);

    return code == NVML_SUCCESS && field.nvmlReturn == NVML_SUCCESS ? field.value.uiVal : 0;
}

/* How many NVLinks lead from one to the other, through switches or not. */
static nvmlReturn_t count_links(const struct smi_topology_gpu *from, const struct smi_topology_gpu *to,
                                unsigned int *links)
{
    unsigned int architecture[2];
    nvmlReturn_t code = nvmlDeviceGetArchitecture(from->device, &architecture[0]);

    *links = 0;
    if (code == NVML_SUCCESS)
        code = nvmlDeviceGetArchitecture(to->device, &architecture[1]);
    if (code != NVML_SUCCESS)
        return code;
    if (architecture[0] < FIRST_WITH_NVLINK || architecture[1] < FIRST_WITH_NVLINK)
        return NVML_SUCCESS;
    for (unsigned int link = 0; link < MOST_LINKS; link++) {
        nvmlPciInfo_t pci;
        code = nvmlDeviceGetNvLinkRemotePciInfo_v2(from->device, link, &pci);
        if (code == NVML_SUCCESS)
            *links += strcmp(pci.busId, to->bus_id) == 0;
        else if (code != NVML_ERROR_NOT_SUPPORTED)
            return code;
    }
    if (switch_links(from->device) != 0 && switch_links(to->device) != 0)
        *links = switch_links(from->device);
    return NVML_SUCCESS;
}

static nvmlReturn_t describe(const struct smi_topology_gpu *from, const struct smi_topology_gpu *to, bool nvlink,
                             char cell[CELL_BYTES])
{
    static const char *const levels[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    nvmlReturn_t (*level_between)(const char *, const char *, unsigned int *) = (void *)smi_slot(SMI_SLOT_PCIE_LEVEL);
    unsigned int links = 0;
    unsigned int level;
    nvmlReturn_t code = nvlink ? count_links(from, to, &links) : NVML_SUCCESS;

    if (code == NVML_SUCCESS)
        code = level_between(from->bus_id, to->bus_id, &level);
    if (code != NVML_SUCCESS)
        return code;
    if (links != 0)
        snprintf(cell, CELL_BYTES, "NV%u", links);
    else
        snprintf(cell, CELL_BYTES, "%s", level < sizeof(levels) / sizeof(levels[0]) ? levels[level] : "Unknown");
    return NVML_SUCCESS;
}

/* Numbers of the bits in ranges; once the list is long, no further range. */
static void list_bits(const unsigned long *mask, char list[LIST_BYTES])
{
    size_t length = 0;

    list[0] = '\0';
    for (unsigned int bit = 0; bit < MASK_WORDS * WORD_BITS && length < LONGEST_LIST; bit++) {
        unsigned int first = bit;
        if ((mask[bit / WORD_BITS] >> bit % WORD_BITS & 1) == 0)
            continue;
        while (bit + 1 < MASK_WORDS * WORD_BITS && (mask[(bit + 1) / WORD_BITS] >> (bit + 1) % WORD_BITS & 1) != 0)
            bit++;
        if (length != 0)
            list[length++] = ',';
        length += (size_t)snprintf(list + length, LIST_BYTES - length, first == bit ? "%u" : "%u-%u", first, bit);
    }
}

/* What is refused is near nothing. */
static void print_affinity(nvmlDevice_t device)
{
    unsigned long cpus[MASK_WORDS] = {0};
    unsigned long nodes[MASK_WORDS] = {0};
    char list[LIST_BYTES];
    unsigned int node;

    nvmlDeviceGetCpuAffinity(device, MASK_WORDS, cpus);
    list_bits(cpus, list);
    printf("\t%s", list);
    nvmlDeviceGetMemoryAffinity(device, MASK_WORDS, nodes, 0);
    list_bits(nodes, list);
    printf("\t%s", list);
    if (nvmlDeviceGetNumaNodeId(device, &node) == NVML_SUCCESS)
        printf("\t\t%u\n", node);
    else
        puts("\t\tN/A");
}

static nvmlReturn_t print_row(const struct smi_topology *gpus, const struct smi_topology_gpu *from, bool nvlink)
{
    char cells[SN_MAX_DEVICES][CELL_BYTES];

    for (unsigned int i = 0; i < gpus->count; i++) {
        nvmlReturn_t code = NVML_SUCCESS;
        if (&gpus->gpu[i] == from)
            strcpy(cells[i], " X ");
        else
            code = describe(from, &gpus->gpu[i], nvlink, cells[i]);
        if (code != NVML_SUCCESS)
            return code;
    }
    printf("GPU%u", from->index);
    for (unsigned int i = 0; i < gpus->count; i++)
        printf("\t%s", cells[i]);
    print_affinity(from->device);
    return NVML_SUCCESS;
}

nvmlReturn_t smi_topology_matrix(bool nvlink)
{
    struct smi_topology gpus;
    nvmlReturn_t code = smi_find_topology(&gpus);

    if (code == NVML_SUCCESS && gpus.count == 0)
        return NVML_ERROR_NOT_FOUND;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < gpus.count; i++)
        code = identify(&gpus.gpu[i]);
    if (code != NVML_SUCCESS)
        return code;
    printf("\t\033[4m");
    for (unsigned int i = 0; i < gpus.count; i++)
        printf("GPU%u\t", gpus.gpu[i].index);
    puts("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m");
    for (unsigned int i = 0; i < gpus.count; i++) {
        code = print_row(&gpus, &gpus.gpu[i], nvlink);
        if (code != NVML_SUCCESS)
            return code;
    }
    puts("\nLegend:\n\n"
         "  X    = Self\n"
         "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
         "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA "
         "node\n"
         "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
         "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n"
         "  PIX  = Connection traversing at most a single PCIe bridge");
    if (nvlink)
        puts("  NV#  = Connection traversing a bonded set of # NVLinks");
    return NVML_SUCCESS;
}
