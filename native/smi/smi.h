/* nvidia-smi: each view is a function that writes to stdout and returns the exit code.
 *
 * The library's own objects are linked in, so that the program runs where nothing can be loaded. It speaks to them
 * through the public functions declared here, like any consumer, and through the library's own headers for what the real
 * one has from the private table. */
#ifndef SN_SMI_H
#define SN_SMI_H

#include <stdbool.h>

#include "../nvml/private.h"
#include "options.h"

#define SMI_VERSION_BYTES 80
#define SMI_NAME_BYTES 96
#define SMI_BUS_ID_BYTES 34
#define SMI_PROCESS_NAME_BYTES 256
#define SMI_FAILED 255
#define SMI_MIB 1048576u

struct smi_devices {
    unsigned int count;
    nvmlDevice_t handle[SN_MAX_DEVICES];
};

/* The GPUs that `ids` names, or all of them if it is null. 0, or the exit code after a line that says what is wrong:
 * there is none, one is lost, a name is none. */
int smi_find_devices(const char *ids, struct smi_devices *devices);

/* Views. */
int smi_table(const struct smi_options *options, const struct smi_devices *devices);
int smi_list(void);
int smi_versions(void);
bool smi_library_text(char *out, size_t size); /* the NVML library's version, as "550.163"; false: not known */
void smi_help(void);

/* Parts of the table. The last one passes over a device that was lost since it was found, and answers why. */
void smi_gpu_rows(nvmlDevice_t device);
void smi_mig_table(const struct smi_devices *devices);
nvmlReturn_t smi_process_table(const struct smi_devices *devices);

/* What nvidia-smi calls a code; its own words, not nvmlErrorString's. */
const char *smi_words(nvmlReturn_t code);
/* What stands in a cell for a value that there is not: N/A if the device does not have it, else ERR!. */
const char *smi_mark(nvmlReturn_t code);
/* Some codes end the program with their own number, the others with 255. */
int smi_exit_code(nvmlReturn_t code);
/* Why there is no handle: a sentence, for GPU is lost and GPU requires reset one with line breaks in it. */
const char *smi_handle_words(nvmlReturn_t code);
/* The bus id of an index, lost or not; else the index. `out` has SMI_BUS_ID_BYTES bytes. */
void smi_bus_id(unsigned int index, char *out);
/* MiB as the views show memory: rounded up, by releases before 550 down. */
unsigned long long smi_mib(unsigned long long bytes);
/* The driver's release, 550 for 550.163.01; 0 if it is not known. */
unsigned int smi_driver_release(void);
/* "12.4" for 12040. */
void smi_cuda_text(int version, char out[16]);

/* The library as nvidia-smi calls it. */
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t code);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *on);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned int *on);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long *count);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, int type, int counter, int location,
                                             unsigned long long *count);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius);
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int *state);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *mw);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device);

#endif
