/* What nvidia-smi has from the library's private table and not from public functions, by the number of the slot. */
#ifndef SN_SMI_SLOTS_H
#define SN_SMI_SLOTS_H

#include "../nvml/private.h"

enum smi_slot {
    SMI_SLOT_PARSE_BUS_ID = 12,
    SMI_SLOT_PCIE_LEVEL = 23,
    SMI_SLOT_ADDRESS = 75,
    SMI_SLOT_ENFORCED_LIMIT = 108,
    SMI_SLOT_FIELDS = 165,
    SMI_SLOT_COMPUTE_APPS = 213,
    SMI_SLOT_ATOMICS = 226,
    SMI_SLOT_HOST_LINK_GENERATION = 230,
    SMI_SLOT_PART_NUMBER = 231,
    SMI_SLOT_FRU_PART_NUMBER = 237,
    SMI_SLOT_MARGIN = 240,
    SMI_SLOT_ADDRESSING = 242,
    SMI_SLOT_SPARSE = 249,
};

typedef nvmlReturn_t smi_slot_fn(void);

/* The function in a slot, to be cast to what it is; one that answers NOT_SUPPORTED if there is none. */
smi_slot_fn *smi_slot(enum smi_slot slot);
/* The number that a slot tells of a device. */
nvmlReturn_t smi_slot_word(enum smi_slot slot, nvmlDevice_t device, unsigned int *out);

#endif
