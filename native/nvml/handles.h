/* Handles of devices, and the functions of other files that several need by name. */
#ifndef SN_HANDLES_H
#define SN_HANDLES_H

#include "access.h"

/* A PCI address as text or struct says it. */
struct sn_address {
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int function;
};

/* The handle of a device by its index in the image, with the identity it had at nvmlInit. */
nvmlDevice_t sn_handle(unsigned int index);
/* Parses [domain:]bus:device[.function], hexadecimal digits of any case and number; false if it is no such text. */
bool sn_parse_address(const char *text, struct sn_address *address);
/* The address of a visible index, of a lost device too; INVALID_ARGUMENT if there is no such index. */
nvmlReturn_t sn_address_of_index(unsigned int visible, struct sn_address *address);
/* The image index of a visible device by its address, or SN_NO_DEVICE. */
unsigned int sn_device_at(const struct sn_address *address);

nvmlReturn_t sn_mig_text(nvmlDevice_t handle, bool uuid, char *out, unsigned int length);
nvmlReturn_t sn_mig_memory(nvmlDevice_t handle, nvmlMemory_v2_t *memory);
nvmlReturn_t sn_mig_bar1(nvmlDevice_t handle, nvmlBAR1Memory_t *memory);
nvmlReturn_t sn_get_margin(nvmlDevice_t device, int *celsius);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy, nvmlViolationTime_t *time);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2, unsigned int *level);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                         unsigned int scope);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);

#endif
