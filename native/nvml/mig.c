/* MIG: the mode, and the devices that a partitioned GPU has. */
#define _GNU_SOURCE
#include "mig.h"
#include "handles.h"
#include "private.h"

bool sn_is_mig_handle(nvmlDevice_t handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)sn_mig_handles;

    return at < sizeof(sn_mig_handles) && at % sizeof(struct nvmlDevice_st) == 0;
}

nvmlReturn_t sn_mig_open(struct sn_mig_read *read, nvmlDevice_t handle)
{
    size_t at = ((uintptr_t)handle - (uintptr_t)sn_mig_handles) / sizeof(struct nvmlDevice_st);

    read->parent.image = sn_image();
    if (read->parent.image == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!sn_is_mig_handle(handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    read->epoch = (unsigned int)(at % SN_EPOCHS);
    read->slot = (unsigned int)(at / SN_EPOCHS % SN_MAX_MIG_DEVICES);
    read->parent.index = (unsigned int)(at / SN_EPOCHS / SN_MAX_MIG_DEVICES);
    read->parent.epoch = sn_view.epoch[read->parent.index] % SN_EPOCHS;
    read->parent.tries = SN_TRIES;
    return NVML_SUCCESS;
}

nvmlReturn_t sn_mig_look(struct sn_mig_read *read)
{
    nvmlReturn_t code = sn_look(&read->parent);

    read->mig = &read->parent.device->mig[read->slot];
    if (code == NVML_SUCCESS && (read->mig->present == 0 || read->mig->epoch % SN_EPOCHS != read->epoch))
        return NVML_ERROR_GPU_IS_LOST;
    return code;
}

static nvmlReturn_t copy_mig(nvmlDevice_t handle, struct sn_mig *copy)
{
    struct sn_mig_read read;
    nvmlReturn_t code = sn_mig_open(&read, handle);

    if (code != NVML_SUCCESS)
        return code;
    do {
        code = sn_mig_look(&read);
        if (code == NVML_SUCCESS)
            *copy = *read.mig;
    } while (sn_again(&read.parent, &code));
    copy->name[sizeof(copy->name) - 1] = '\0';
    copy->uuid[sizeof(copy->uuid) - 1] = '\0';
    return code;
}

nvmlReturn_t sn_mig_text(nvmlDevice_t handle, bool uuid, char *out, unsigned int length)
{
    struct sn_mig copy;
    nvmlReturn_t code = copy_mig(handle, &copy);

    return code == NVML_SUCCESS ? sn_put_text(uuid ? copy.uuid : copy.name, out, length) : code;
}

nvmlReturn_t sn_mig_memory(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    struct sn_mig copy;
    nvmlReturn_t code = copy_mig(handle, &copy);

    if (code != NVML_SUCCESS)
        return code;
    memory->total = copy.memory_total_bytes;
    memory->reserved = copy.memory_reserved_bytes;
    memory->used = copy.memory_used_bytes;
    memory->free = copy.memory_total_bytes - copy.memory_reserved_bytes - copy.memory_used_bytes;
    return NVML_SUCCESS;
}

nvmlReturn_t sn_mig_bar1(nvmlDevice_t handle, nvmlBAR1Memory_t *memory)
{
    struct sn_mig copy;
    nvmlReturn_t code = copy_mig(handle, &copy);

    if (code != NVML_SUCCESS)
        return code;
    memory->bar1Total = copy.bar1_total_bytes;
    memory->bar1Free = copy.bar1_total_bytes;
    memory->bar1Used = 0;
    return NVML_SUCCESS;
}

/* A MIG device counts uncorrected errors of SRAM; none are simulated. */
nvmlReturn_t sn_mig_errors(nvmlDevice_t handle, unsigned int location, unsigned long long *count)
{
    struct sn_mig copy;
    nvmlReturn_t code = copy_mig(handle, &copy);

    if (code != NVML_SUCCESS)
        return code;
    if (location != NVML_MEMORY_LOCATION_SRAM)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlDevice_t sn_mig_by_uuid(const char *uuid)
{
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        unsigned int index = sn_view.device[visible];
        for (unsigned int slot = 0; slot < SN_MAX_MIG_DEVICES; slot++) {
            char text[SN_LONGEST_TEXT];
            nvmlDevice_t handle;
            if (nvmlDeviceGetMigDeviceHandleByIndex(sn_handle(index), slot, &handle) == NVML_SUCCESS &&
                sn_mig_text(handle, true, text, sizeof(text)) == NVML_SUCCESS && strcmp(text, uuid) == 0)
                return handle;
        }
    }
    return NULL;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    __atomic_store_n(&sn_mig_mode_was_asked, 1, __ATOMIC_RELAXED);
    return sn_get_pair(device, offsetof(struct sn_device, mig_mode_current),
                       offsetof(struct sn_device, mig_mode_pending), current, pending);
}

/* None while the GPU is not in MIG mode. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    unsigned int most;
    unsigned int mode;
    nvmlReturn_t code = sn_get_word(device, offsetof(struct sn_device, mig_max_gpu_instances), &most);

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = sn_get_word(device, offsetof(struct sn_device, mig_mode_current), &mode);
    if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *count = code == NVML_SUCCESS && mode != 0 ? most : 0;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    if (is_mig == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = sn_is_mig_handle(device);
    return NVML_SUCCESS;
}

/* NOT_FOUND ends a consumer's iteration, where NOT_SUPPORTED would end the consumer. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    struct sn_read read;
    unsigned int epoch = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (mig == NULL)
        return sn_bad_argument(device);
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS && (index >= SN_MAX_MIG_DEVICES || read.device->mig[index].present == 0))
            code = NVML_ERROR_NOT_FOUND;
        if (code == NVML_SUCCESS)
            epoch = read.device->mig[index].epoch;
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS)
        *mig = &sn_mig_handles[read.index][index][epoch % SN_EPOCHS];
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    struct sn_mig copy;
    nvmlReturn_t code = sn_is_mig_handle(mig) ? copy_mig(mig, &copy) : sn_bad_argument(mig);

    if (code != NVML_SUCCESS)
        return code;
    if (device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = sn_handle((unsigned int)(((uintptr_t)mig - (uintptr_t)sn_mig_handles) / sizeof(sn_mig_handles[0])));
    return NVML_SUCCESS;
}

static nvmlReturn_t instance_id(nvmlDevice_t device, unsigned int *id, bool compute)
{
    struct sn_mig copy;
    nvmlReturn_t code = sn_is_mig_handle(device) ? copy_mig(device, &copy) : sn_refuse_device(device);

    if (code != NVML_SUCCESS)
        return code;
    if (id == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *id = compute ? copy.compute_instance : copy.gpu_instance;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(device, id, false);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(device, id, true);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct sn_mig copy;
    nvmlReturn_t code = sn_is_mig_handle(device) ? copy_mig(device, &copy) : sn_refuse_device(device);

    if (code != NVML_SUCCESS)
        return code;
    if (attributes == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = copy.multiprocessors,
        .sharedCopyEngineCount = copy.copy_engines,
        .sharedDecoderCount = copy.decoders,
        .sharedEncoderCount = copy.encoders,
        .sharedJpegCount = copy.jpegs,
        .sharedOfaCount = copy.ofas,
        .gpuInstanceSliceCount = copy.gpu_slices,
        .computeInstanceSliceCount = copy.compute_slices,
        .memorySizeMB = copy.memory_total_bytes >> 20,
    };
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}
