/* Field values, by the numbers that the newest nvml.h gives them. */
#ifndef SN_FIELDS_H
#define SN_FIELDS_H

#include "access.h"

/* Fills type and value of one field; the caller's own fieldId is not looked at. */
nvmlReturn_t sn_get_field(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field);
/* The same for the ids that are about NVLinks; NOT_SUPPORTED for all others. */
nvmlReturn_t sn_get_link_field(nvmlDevice_t device, unsigned int id, unsigned int scope, nvmlFieldValue_t *field);

static inline nvmlReturn_t sn_put_uint(nvmlFieldValue_t *field, unsigned int value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
    return NVML_SUCCESS;
}

static inline nvmlReturn_t sn_put_ull(nvmlFieldValue_t *field, unsigned long long value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = value;
    return NVML_SUCCESS;
}

#endif
