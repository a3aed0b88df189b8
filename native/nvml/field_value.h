/* A field's value, of one of the types that it may have. */
#ifndef SN_FIELD_VALUE_H
#define SN_FIELD_VALUE_H

#include "abi.h"

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
