/* Slots of the private table that have a file of their own. */
#ifndef SN_PRIVATE_H
#define SN_PRIVATE_H

#include "access.h"

#define SN_PRIVATE_NAME_BYTES 4096

/* One row of the lists behind slots 213 to 215. */
struct sn_private_process {
    nvmlProcessDetail_v1_t detail;
    char name[SN_PRIVATE_NAME_BYTES];
};
_Static_assert(sizeof(struct sn_private_process) == 4128, "as nvidia-smi strides");

/* Set by nvmlDeviceGetMigMode; from it pmon's release is known. */
extern uint8_t sn_mig_mode_was_asked;

/* Slot 81, for our own nvidia-smi too: the bus id of a visible index as text. */
nvmlReturn_t sn_bus_id_of_index(unsigned int index, char *out, unsigned int length);
nvmlReturn_t sn_private_compute(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_mps(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_graphics(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries);
nvmlReturn_t sn_private_utilization(nvmlDevice_t device, unsigned long long last_seen_us, unsigned int *value_type,
                                    unsigned int *count, void *samples);

/* Resetting GPUs. */
nvmlReturn_t sn_private_is_primary(nvmlDevice_t device, unsigned int *primary);
nvmlReturn_t sn_private_reset_fabric(unsigned int *state);
nvmlReturn_t sn_private_reset_group(void **group);
nvmlReturn_t sn_private_reset_members(const void *group, char **bus_ids, unsigned int *count);
nvmlReturn_t sn_private_reset(unsigned int count, const nvmlDevice_t *devices);
/* Lists of settings: a number of pairs of what and how much. */
struct sn_private_setting {
    unsigned int what;
    unsigned int value;
};
struct sn_private_settings {
    unsigned int count;
    struct sn_private_setting setting[1];
};
nvmlReturn_t sn_private_policies(nvmlDevice_t device, struct sn_private_settings *policies);
nvmlReturn_t sn_private_set_policy(nvmlDevice_t device);
nvmlReturn_t sn_private_slider_limits(nvmlDevice_t device, struct sn_private_settings *sliders);
nvmlReturn_t sn_private_sliders(nvmlDevice_t device, struct sn_private_settings *sliders);
nvmlReturn_t sn_private_set_slider(nvmlDevice_t device);

#endif
