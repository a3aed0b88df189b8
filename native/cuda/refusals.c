/* A weak definition of every symbol: what answers where no other file here defines the function.
 *
 * All of them would compute, or serve what does. Before cuInit they say so, as the driver does. */
#define _GNU_SOURCE
#include "driver_api.h"

typedef CUresult refuse_fn(void);

static CUresult refuse(void)
{
    return sn_ordinals() == NULL ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY(name, version) CUDA_EXPORT refuse_fn name __attribute__((weak, alias("refuse")));
#include "entries.inc"
#undef ENTRY
