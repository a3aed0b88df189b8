/* What the codes are called. The texts are for ever: callers keep the pointers. */
#define _GNU_SOURCE
#include "abi.h"

static const char *const texts[] = {
    "Success",
    "Uninitialized",
    "Invalid Argument",
    "Not Supported",
    "Insufficient Permissions",
    "Already Initialized",
    "Not Found",
    "Insufficient Size",
    "Insufficient External Power",
    "Driver Not Loaded",
    "Timeout",
    "Interrupt Request Issue",
    "NVML Shared Library Not Found",
    "Function Not Found",
    "Corrupted infoROM",
    "GPU is lost",
    "GPU requires restart",
    "The operating system has blocked the request.",
    "RM has detected an NVML/RM version mismatch.",
    "In use by another client",
    "Insufficient Memory",
    "No data",
    "The requested vgpu operation is not available on target device, because ECC is enabled",
    "Insufficient Resources",
    "Frequency not supported",
    "Argument version mismatch",
    "Requested functionality has been deprecated",
    "System is not in ready state",
    "No supported GPUs were found",
    "Resource not in correct state to perform requested operation",
    "Reset type not supported for given device",
};

NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    return (unsigned int)code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : "Unknown Error";
}
