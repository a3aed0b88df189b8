/* cuGetProcAddress. What is newer than the node's driver is not there, whatever this file could offer. */
#define _GNU_SOURCE
#include "driver_api.h"
#include "entries.h"

enum { DEFAULT_STREAM, LEGACY_STREAM, PER_THREAD_DEFAULT_STREAM };

static CUresult look_up(const char *symbol, void **function, int version, uint64_t flags, enum sn_entry_status *status)
{
    sn_entry *entry;
    int newest;

    if (symbol == NULL || symbol[0] == '\0' || function == NULL || flags > PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (sn_driver_version(&newest) != CUDA_SUCCESS)
        newest = INT32_MAX;
    if (version > newest)
        return CUDA_ERROR_INVALID_VALUE;
    entry = sn_find_entry(symbol, version, newest, status);
    memcpy(function, &entry, sizeof(*function));
    return CUDA_SUCCESS;
}

/* Without a status to tell it by, what is not there is an error. */
CUDA_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    enum sn_entry_status status;
    CUresult code = look_up(symbol, function, version, flags, &status);

    return code == CUDA_SUCCESS && status != SN_ENTRY_FOUND ? CUDA_ERROR_NOT_FOUND : code;
}

CUDA_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    enum sn_entry_status found;
    CUresult code = look_up(symbol, function, version, flags, &found);

    if (code == CUDA_SUCCESS && status != NULL)
        *status = (int)found;
    return code;
}
