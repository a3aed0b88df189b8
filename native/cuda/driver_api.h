/* The CUDA driver API as far as the files here share it: codes, attributes, and the devices that a process sees.
 *
 * The library's own objects are linked in, so that image, visibility and identity of devices are one thing for NVML and
 * CUDA. Nothing here computes: whatever would, answers CUDA_ERROR_NOT_SUPPORTED (see refusals.c). Names and numbers are
 * those of the public driver API. */
#ifndef SN_DRIVER_API_H
#define SN_DRIVER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../nvml/access.h"

#define CUDA_EXPORT __attribute__((visibility("default")))
#define SN_UUID_BYTES 16

typedef int CUdevice;

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef struct {
    unsigned char bytes[SN_UUID_BYTES];
} CUuuid;

/* The devices of this process in CUDA's order, fixed by the cuInit that succeeded. */
struct sn_ordinals {
    unsigned int count;
    nvmlDevice_t device[SN_MAX_DEVICES];
};

/* Null before a cuInit that succeeded. */
const struct sn_ordinals *sn_ordinals(void);
/* The handle behind an ordinal: NOT_INITIALIZED before cuInit, INVALID_DEVICE for an ordinal that there is not. */
CUresult sn_device(CUdevice device, nvmlDevice_t *handle);
/* Fills `ordinals` with the living devices that NVML shows, as CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES arrange them;
 * either text may be null. */
void sn_arrange(struct sn_ordinals *ordinals, const char *order, const char *visible);
/* What a CUDA function answers where NVML's answers `code`. */
CUresult sn_result(nvmlReturn_t code);
/* The 16 bytes of "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; false if it is no such text. */
bool sn_uuid_bytes(const char *text, unsigned char bytes[SN_UUID_BYTES]);
/* The CUDA version of the node's driver; any caller, at any time. */
CUresult sn_driver_version(int *version);

/* The library as CUDA's side calls it. */
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                         unsigned int scope);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, unsigned int capability,
                                    unsigned int *status);

#endif
