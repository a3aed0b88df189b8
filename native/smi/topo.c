/* nvidia-smi topo: how GPUs are connected to one another, and which CPUs and memory are near. */
#define _GNU_SOURCE
#include "subcommand.h"

#include <stdio.h>
#include <string.h>

#include "topo_matrices.h"

#define USAGE 2

static void print_help(void)
{
    puts("\n"
         "    topo -- Show how the GPUs are connected.\n"
         "\n"
         "    Usage: nvidia-smi topo [options]\n"
         "\n"
         "    [-h | --help]: This text\n"
         "    [-m | --matrix]: What lies between GPUs, and the CPUs and memory near them\n"
         "    [-mp | --matrix_pci]: The same without NVLink\n"
         "    [-p2p | --p2pstatus]: Whether GPUs reach each other's memory: r (read), w (write), n (NVLink),\n"
         "                          a (atomics) or p (PCIe)\n");
}

/* The capability's number, or -1. */
static int capability(const char *letter)
{
    static const char letters[] = "rwnap";
    const char *found = letter[0] == '\0' ? NULL : strchr(letters, letter[0]);

    return found == NULL ? -1 : (int)(found - letters);
}

static int show_p2p(const char *letter)
{
    int index = capability(letter);

    if (index < 0) {
        puts("Invalid p2p capability index specified at the command-line");
        return USAGE;
    }
    if (smi_p2p_matrix((unsigned int)index) == NVML_SUCCESS)
        return 0;
    puts("Failed to display p2p capability matrix for the specified p2p Index\n");
    return SMI_FAILED;
}

static int show_matrix(bool nvlink)
{
    if (smi_topology_matrix(nvlink) == NVML_SUCCESS)
        return 0;
    puts("Failed to run topology matrix\n");
    return SMI_FAILED;
}

/* Everything that is asked for, one after the other. */
int smi_topo(int count, char **arguments)
{
    bool help = false;
    bool matrix = false;
    bool pci_matrix = false;
    bool has_value = false;
    const char *ids = NULL;
    const char *p2p = NULL;
    const struct smi_argument known[] = {
        {"-h", "--help", &help, NULL},
        {"-m", "--matrix", &matrix, NULL},
        {"-mp", "--matrix_pci", &pci_matrix, NULL},
        {"-i", "--id", &has_value, &ids},
        {"-p2p", "--p2pstatus", &has_value, &p2p},
    };
    struct smi_devices devices;
    int status = smi_read_arguments(count, arguments, known, sizeof(known) / sizeof(known[0]));

    if (status == 0 && (help || count == 0)) {
        print_help();
        return 0;
    }
    if (status == 0 && ids != NULL)
        status = smi_find_devices(ids, &devices);
    if (status != 0)
        return status;
    if (p2p != NULL)
        status = show_p2p(p2p);
    if (status == 0 && ids != NULL) {
        puts("The -i command line argument must be used in conjunction with -n or -p.\n");
        return SMI_FAILED;
    }
    if (status == 0 && matrix)
        status = show_matrix(true);
    if (status == 0 && pci_matrix)
        status = show_matrix(false);
    return status;
}
