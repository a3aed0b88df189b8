/* nvidia-smi --version and --help: neither looks at a device. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smi.h"

/* "12.550.163.01" without the interface's own number, and without what follows major and minor: "550.163". */
static void nvml_text(const char *version, char *out, size_t size)
{
    const char *dot = strchr(version, '.');
    char *rest = NULL;
    long major = dot == NULL ? 0 : strtol(dot + 1, &rest, 10);
    long minor = rest == NULL || *rest != '.' ? 0 : strtol(rest + 1, NULL, 10);

    snprintf(out, size, "%ld.%02ld", major, minor);
}

bool smi_library_text(char *out, size_t size)
{
    char nvml[SMI_VERSION_BYTES];

    if (nvmlSystemGetNVMLVersion(nvml, sizeof(nvml)) != NVML_SUCCESS)
        return false;
    nvml_text(nvml, out, size);
    return true;
}

int smi_versions(void)
{
    char driver[SMI_VERSION_BYTES] = "N/A";
    char library[64] = "N/A";
    char cuda[16] = "N/A";
    int version;

    if (nvmlSystemGetDriverVersion(driver, sizeof(driver)) != NVML_SUCCESS)
        strcpy(driver, "N/A");
    smi_library_text(library, sizeof(library));
    if (nvmlSystemGetCudaDriverVersion_v2(&version) == NVML_SUCCESS)
        smi_cuda_text(version, cuda);
    printf("NVIDIA-SMI version  : %s\n", driver);
    printf("NVML version        : %s\n", library);
    printf("DRIVER version      : %s\n", driver);
    printf("CUDA Version        : %s\n", cuda);
    return 0;
}

void smi_help(void)
{
    char driver[SMI_VERSION_BYTES];

    if (nvmlSystemGetDriverVersion(driver, sizeof(driver)) == NVML_SUCCESS)
        printf("NVIDIA System Management Interface -- v%s\n\n", driver);
    else
        puts("NVIDIA System Management Interface\n");
    puts("The nvidia-smi of a simulated node: it shows the GPUs that the node's image describes.\n"
         "\n"
         "    nvidia-smi [OPTION]\n"
         "\n"
         "Without an option it shows every GPU and what runs on it in one table.\n"
         "\n"
         "    -h,   --help                Print this text and exit.\n"
         "          --version             Print the versions of the node's software and exit.\n"
         "    -L,   --list-gpus           List the GPUs, and the MIG devices on them, with their UUIDs.\n"
         "    -q,   --query               Show all that is known of each GPU.\n"
         "          -x, --xml-format      As XML.\n"
         "          -d, --display=        Only these sections.\n"
         "          -u, --unit            Of units instead.\n"
         "\n"
         "Comma separated values of chosen properties, which the --help-query options list:\n"
         "\n"
         "          --query-gpu=              Of each GPU.\n"
         "          --query-compute-apps=     Of each process that computes.\n"
         "          --query-accounted-apps=   Of each process that was accounted for.\n"
         "          --query-supported-clocks= Of each pair of clocks.\n"
         "          --query-retired-pages=    Of each page that was retired.\n"
         "          --query-remapped-rows=    Of rows that were remapped.\n"
         "          --format=             csv, and after it noheader, nounits or both.\n"
         "\n"
         "With the table, -q and the queries:\n"
         "\n"
         "    -i,   --id=                 Only these GPUs: indices, UUIDs, serial numbers or PCI bus ids.\n"
         "    -f,   --filename=           Write to a file.\n"
         "    -l,   --loop=               Again and again, every so many seconds.\n"
         "    -lms, --loop-ms=            Every so many milliseconds.\n"
         "\n"
         "    topo                        How GPUs are connected; nvidia-smi topo -h tells more.\n"
         "    nvlink                      The NVLinks of the GPUs; nvidia-smi nvlink -h tells more.\n"
         "\n"
         "It changes nothing. Options that do, dmon, pmon and mig are the real program's, which a node takes in place of\n"
         "this one: simnode run --nvidia-smi FILE.");
}
