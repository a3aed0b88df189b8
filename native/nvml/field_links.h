/* The field values that are about NVLinks. */
#ifndef SN_FIELD_LINKS_H
#define SN_FIELD_LINKS_H

#include "abi.h"

/* Fills type and value of one, by the number that the newest nvml.h gives it; the caller's own fieldId is not looked
 * at. NOT_SUPPORTED for ids that are about anything else. */
nvmlReturn_t sn_get_link_field(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field);

#endif
