/* nvidia-smi without arguments: three lines a GPU, then MIG devices if there are any, then processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "row.h"
#include "smi.h"

#define CORRUPTED_INFOROM 14

static void print_head(void)
{
    char driver[SMI_VERSION_BYTES];
    char cuda[16];
    char now[64];
    time_t seconds = time(NULL);
    struct tm local;
    struct row row;
    int version;
    nvmlReturn_t code;

    strftime(now, sizeof(now), "%a %b %e %H:%M:%S %Y", localtime_r(&seconds, &local));
    printf("%s       \n", now);
    puts("+-----------------------------------------------------------------------------------------+");
    row_start(&row, "| NVIDIA-SMI                        Driver Version:                CUDA Version:          |");
    code = nvmlSystemGetDriverVersion(driver, sizeof(driver));
    if (code != NVML_SUCCESS)
        strcpy(driver, smi_mark(code));
    row_put(&row, 13, 22, driver);
    row_put(&row, 52, 10, driver);
    code = nvmlSystemGetCudaDriverVersion_v2(&version);
    if (code == NVML_SUCCESS)
        smi_cuda_text(version, cuda);
    row_put(&row, 81, 8, code == NVML_SUCCESS ? cuda : smi_mark(code));
    row_print(&row);
    puts("|-----------------------------------------+------------------------+----------------------+");
    puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |");
    puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |");
    puts("|                                         |                        |               MIG M. |");
    puts("|=========================================+========================+======================|");
}

/* After everything else, each device's infoROM is looked at. */
static nvmlReturn_t check_inforoms(const struct smi_devices *devices)
{
    nvmlReturn_t worst = NVML_SUCCESS;

    for (unsigned int i = 0; i < devices->count; i++) {
        char bus_id[SMI_BUS_ID_BYTES];
        unsigned int index;
        nvmlReturn_t code;
        if (nvmlDeviceGetIndex(devices->handle[i], &index) != NVML_SUCCESS)
            continue;
        code = nvmlDeviceValidateInforom(devices->handle[i]);
        if ((int)code != CORRUPTED_INFOROM)
            continue;
        smi_bus_id(index, bus_id);
        printf("WARNING: infoROM is corrupted at gpu %s\n", bus_id);
        worst = code;
    }
    return worst;
}

int smi_table(const struct smi_options *options, const struct smi_devices *devices)
{
    bool partitioned = false;

    (void)options;
    print_head();
    for (unsigned int i = 0; i < devices->count; i++) {
        unsigned int current;
        unsigned int pending;
        smi_gpu_rows(devices->handle[i]);
        if (nvmlDeviceGetMigMode(devices->handle[i], &current, &pending) == NVML_SUCCESS && current == 1)
            partitioned = true;
    }
    if (partitioned)
        smi_mig_table(devices);
    if (smi_process_table(devices) == NVML_SUCCESS)
        return smi_exit_code(check_inforoms(devices));
    puts("Internal error");
    return SMI_FAILED;
}
