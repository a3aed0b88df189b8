/* What nvidia-smi says: codes in words, exit codes, sizes, versions. */
#define _GNU_SOURCE
#include <stdio.h>

#include "smi.h"
#include "../nvml/driver.h"

#define NO_DATA 21
#define FIRST_TO_ROUND_UP 550

static const char *const words[] = {
    [1] = "Uninitialized",
    [2] = "Invalid Argument",
    [3] = "N/A",
    [4] = "Insufficient Permissions",
    [5] = "Already Initialized",
    [6] = "Not Found",
    [7] = "Insufficient Size",
    [8] = "Insufficient External Power",
    [9] = "Driver Not Loaded",
    [10] = "Timeout",
    [11] = "Interrupt Request Issue",
    [12] = "NVML Shared Library Not Found",
    [13] = "Function Not Found",
    [14] = "Corrupted infoROM",
    [15] = "GPU is lost",
    [16] = "GPU requires reset",
    [17] = "GPU access blocked by the operating system",
    [18] = "Driver/library version mismatch",
    [19] = "In use by another client",
    [20] = "Insufficient Memory",
    [21] = "No data",
    [22] = "vGPU ECC not supported",
    [23] = "Insufficient Resources",
    [24] = "Invalid Frequency",
    [25] = "Argument version mismatch",
    [26] = "Requested functionality has been deprecated",
    [27] = "System is not in ready state",
    [28] = "No supported GPUs were found",
    [29] = "Resource not in correct state to perform requested operation",
};

const char *smi_words(nvmlReturn_t code)
{
    unsigned int number = (unsigned int)code;

    if (code == NVML_ERROR_UNKNOWN)
        return "Unknown Error";
    return number != 0 && number < sizeof(words) / sizeof(words[0]) ? words[number] : nvmlErrorString(code);
}

const char *smi_mark(nvmlReturn_t code)
{
    return code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_NOT_FOUND || (int)code == NO_DATA ? "N/A" : "ERR!";
}

int smi_exit_code(nvmlReturn_t code)
{
    switch ((int)code) {
    case 0:
    case 2:
    case 3:
    case 4:
    case 6:
    case 8:
    case 9:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
    case 17:
    case 18:
    case 19:
    case 23:
        return (int)code;
    default:
        return SMI_FAILED;
    }
}

const char *smi_handle_words(nvmlReturn_t code)
{
    switch ((int)code) {
    case 4:
    case 6:
        return smi_words(code);
    case 15:
        return "GPU is lost.  Reboot the system to recover this GPU\n\n";
    case 16:
        return "A GPU reset must occur before this GPU can be used again.\n\n.";
    default:
        return "Unknown Error";
    }
}

void smi_bus_id(unsigned int index, char *out)
{
    if (sn_bus_id_of_index(index, out, SMI_BUS_ID_BYTES) != NVML_SUCCESS)
        snprintf(out, SMI_BUS_ID_BYTES, "%u", index);
}

unsigned int smi_driver_release(void)
{
    return sn_driver() / 1000;
}

void smi_cuda_text(int version, char out[16])
{
    snprintf(out, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

unsigned long long smi_mib(unsigned long long bytes)
{
    return bytes / SMI_MIB + (bytes % SMI_MIB != 0 && smi_driver_release() >= FIRST_TO_ROUND_UP);
}
