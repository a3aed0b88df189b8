/* MIG: the devices that a partitioned GPU has. */
#define _GNU_SOURCE
#include "mig.h"

#include <stdio.h>
#include <unistd.h>

#include "handles.h"

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

/* Those MIG devices of a GPU that this process sees: their slots, in order, a handle of each, and what each says. */
struct seen {
    unsigned int count;
    unsigned int slot[SN_MAX_MIG_DEVICES];
    nvmlDevice_t handle[SN_MAX_MIG_DEVICES];
    struct sn_mig copy[SN_MAX_MIG_DEVICES];
};

/* The minors are the kernel module's: of each GPU 15 instances, and of each of them itself and 8 compute instances. */
static bool has_capability(uint32_t gpu, uint32_t gpu_instance, uint32_t part)
{
    char path[48];

    snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u",
             3 + (gpu * SN_GPU_INSTANCE_IDS + gpu_instance) * 9 + part);
    return access(path, F_OK) == 0;
}

/* As with GPUs only names count, and all or none of them is all: a container has those that it was given. */
static void keep_given(struct seen *seen, uint32_t gpu)
{
    struct seen given = {0};

    if (!sn_view.by_files)
        return;
    for (unsigned int i = 0; i < seen->count; i++) {
        const struct sn_mig *mig = &seen->copy[i];
        if (!has_capability(gpu, mig->gpu_instance, 0) ||
            !has_capability(gpu, mig->gpu_instance, 1 + mig->compute_instance))
            continue;
        given.slot[given.count] = seen->slot[i];
        given.copy[given.count] = *mig;
        given.handle[given.count++] = seen->handle[i];
    }
    if (given.count != 0)
        *seen = given;
}

/* `lost`: also those of a GPU that answers nothing else any more, as long as it is the same one. */
static nvmlReturn_t look_around(nvmlDevice_t device, bool lost, struct seen *seen)
{
    struct sn_read read;
    uint32_t minor = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    do {
        seen->count = 0;
        code = sn_look(&read);
        if (lost && read.device->present != 0 && read.device->epoch % SN_EPOCHS == read.epoch)
            code = NVML_SUCCESS;
        for (unsigned int i = 0; code == NVML_SUCCESS && i < SN_MAX_MIG_DEVICES; i++) {
            const struct sn_mig *mig = &read.device->mig[i];
            if (mig->present == 0)
                continue;
            seen->copy[seen->count] = *mig;
            seen->slot[seen->count] = i;
            seen->handle[seen->count++] = &sn_mig_handles[read.index][i][mig->epoch % SN_EPOCHS];
        }
        minor = read.device->minor_number.value;
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS)
        keep_given(seen, minor);
    return code;
}

nvmlReturn_t sn_mig_index(nvmlDevice_t handle, unsigned int *index)
{
    struct sn_mig_read read;
    struct seen seen;
    nvmlReturn_t code = sn_mig_open(&read, handle);

    if (code == NVML_SUCCESS)
        code = look_around(sn_handle(read.parent.index), false, &seen);
    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int i = 0; i < seen.count; i++)
        if (seen.slot[i] == read.slot) {
            *index = i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sn_mig_by_uuid(const char *uuid, nvmlDevice_t *mig)
{
    for (unsigned int visible = 0; visible < sn_view.count; visible++) {
        nvmlDevice_t gpu = sn_handle(sn_view.device[visible]);
        struct seen seen;
        if (look_around(gpu, true, &seen) != NVML_SUCCESS)
            continue;
        for (unsigned int i = 0; i < seen.count; i++) {
            nvmlReturn_t code;
            if (strncmp(seen.copy[i].uuid, uuid, sizeof(seen.copy[i].uuid)) != 0)
                continue;
            code = sn_refuse_device(gpu);
            if (code != NVML_ERROR_NOT_SUPPORTED)
                return code;
            *mig = seen.handle[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
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
    struct seen seen;
    nvmlReturn_t code = mig == NULL ? sn_bad_argument(device) : look_around(device, false, &seen);

    if (code != NVML_SUCCESS)
        return code;
    if (index >= seen.count)
        return NVML_ERROR_NOT_FOUND;
    *mig = seen.handle[index];
    return NVML_SUCCESS;
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
