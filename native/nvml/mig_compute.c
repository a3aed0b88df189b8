/* Compute instances: the parts of a GPU instance. Each is a MIG device, and its handle is that device's. */
#define _GNU_SOURCE
#include "handles.h"
#include "mig.h"

/* One kind of compute instance in an instance of one kind, and how many of it still fit there. */
struct kind {
    struct sn_mig_profile gpu;
    struct sn_mig_compute compute;
    unsigned int remaining;
};

/* INVALID_ARGUMENT for a number that no header has, NOT_SUPPORTED for one that this GPU instance has not. */
static nvmlReturn_t copy_kind(nvmlGpuInstance_t handle, unsigned int number, struct kind *kind)
{
    struct sn_instance instance;
    nvmlReturn_t code = sn_instance_open(&instance, handle);

    if (code != NVML_SUCCESS)
        return code;
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    do {
        const struct sn_mig_profile *gpu = NULL;
        code = sn_instance_look(&instance);
        for (unsigned int i = 0; code == NVML_SUCCESS && i < SN_MAX_MIG_PROFILES; i++)
            if (instance.parent.device->mig_profile[i].present &&
                instance.parent.device->mig_profile[i].number == instance.profile)
                gpu = &instance.parent.device->mig_profile[i];
        if (code == NVML_SUCCESS)
            code = NVML_ERROR_NOT_SUPPORTED;
        for (unsigned int i = 0; gpu != NULL && i < gpu->compute_count && i < SN_MAX_COMPUTE_PROFILES; i++)
            if (gpu->compute[i].number == number) {
                *kind = (struct kind){*gpu, gpu->compute[i], instance.of->remaining[i]};
                code = NVML_SUCCESS;
            }
    } while (sn_again(&instance.parent, &code));
    kind->gpu.name[sizeof(kind->gpu.name) - 1] = '\0';
    if (kind->compute.placement_count > sizeof(kind->compute.placement))
        kind->compute.placement_count = sizeof(kind->compute.placement);
    return code;
}

static nvmlReturn_t copy_shared(nvmlGpuInstance_t handle, unsigned int number, unsigned int engines, struct kind *kind)
{
    nvmlReturn_t code = copy_kind(handle, number, kind);

    if (engines >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT && code != NVML_ERROR_UNINITIALIZED)
        return NVML_ERROR_INVALID_ARGUMENT;
    return code;
}

/* "MIG 1c.3g.40gb"; one that fills its GPU instance has that one's name. */
static void put_name(char *name, const struct kind *kind)
{
    static const char mig[] = "MIG ";

    if (kind->compute.slices == kind->gpu.slices) {
        memcpy(name, kind->gpu.name, sizeof(kind->gpu.name));
        return;
    }
    memcpy(name, mig, sizeof(mig) - 1);
    name += sizeof(mig) - 1;
    *name++ = (char)('0' + kind->compute.slices);
    *name++ = 'c';
    *name++ = '.';
    memcpy(name, kind->gpu.name + sizeof(mig) - 1, sizeof(kind->gpu.name) - (sizeof(mig) - 1));
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int number,
                                                                      unsigned int engines,
                                                                      nvmlComputeInstanceProfileInfo_t *info)
{
    struct kind kind = {0};
    nvmlReturn_t code = copy_shared(handle, number, engines, &kind);

    if (code == NVML_SUCCESS && info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *info = (nvmlComputeInstanceProfileInfo_t){
            .id = number,
            .sliceCount = kind.compute.slices,
            .instanceCount = kind.compute.instances,
            .multiprocessorCount = kind.compute.multiprocessors,
            .sharedCopyEngineCount = kind.gpu.copy_engines,
            .sharedDecoderCount = kind.gpu.decoders,
            .sharedEncoderCount = kind.gpu.encoders,
            .sharedJpegCount = kind.gpu.jpegs,
            .sharedOfaCount = kind.gpu.ofas,
        };
    return code;
}

/* Versions 2 and 3 begin alike; 3 has one member more. */
NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int number,
                                                                       unsigned int engines,
                                                                       nvmlComputeInstanceProfileInfo_v2_t *info)
{
    struct kind kind = {0};
    nvmlReturn_t code = copy_shared(handle, number, engines, &kind);

    if (code != NVML_SUCCESS)
        return code;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version == SN_TAG(nvmlComputeInstanceProfileInfo_v3_t, 3))
        ((nvmlComputeInstanceProfileInfo_v3_t *)(void *)info)->capabilities = kind.gpu.graphics;
    else if (info->version != SN_TAG(nvmlComputeInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *info = (nvmlComputeInstanceProfileInfo_v2_t){
        .version = info->version,
        .id = number,
        .sliceCount = kind.compute.slices,
        .instanceCount = kind.compute.instances,
        .multiprocessorCount = kind.compute.multiprocessors,
        .sharedCopyEngineCount = kind.gpu.copy_engines,
        .sharedDecoderCount = kind.gpu.decoders,
        .sharedEncoderCount = kind.gpu.encoders,
        .sharedJpegCount = kind.gpu.jpegs,
        .sharedOfaCount = kind.gpu.ofas,
    };
    put_name(info->name, &kind);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                            unsigned int profile_id,
                                                                            unsigned int *count)
{
    struct kind kind = {0};
    nvmlReturn_t code = copy_kind(handle, profile_id, &kind);

    if (code == NVML_SUCCESS && count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *count = kind.remaining;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle,
                                                                             unsigned int profile_id,
                                                                             nvmlComputeInstancePlacement_t *placements,
                                                                             unsigned int *count)
{
    struct kind kind = {0};
    nvmlReturn_t code = copy_kind(handle, profile_id, &kind);

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = kind.compute.placement_count;
    for (unsigned int i = 0; placements != NULL && i < kind.compute.placement_count; i++)
        placements[i] = (nvmlComputeInstancePlacement_t){kind.compute.placement[i], kind.compute.slices};
    return NVML_SUCCESS;
}

/* The handles of those MIG devices of the GPU instance whose profile, or with `by_id` whose id, is `which`. */
static nvmlReturn_t copy_handles(nvmlGpuInstance_t handle, bool by_id, unsigned int which,
                                 nvmlComputeInstance_t found[SN_MAX_MIG_DEVICES], unsigned int *count)
{
    struct sn_instance instance;
    nvmlReturn_t code = sn_instance_open(&instance, handle);

    if (code != NVML_SUCCESS)
        return code;
    do {
        *count = 0;
        code = sn_instance_look(&instance);
        for (unsigned int i = 0; code == NVML_SUCCESS && i < SN_MAX_MIG_DEVICES; i++) {
            const struct sn_mig *mig = &instance.parent.device->mig[i];
            if (mig->present && mig->gpu_instance == instance.id &&
                (by_id ? mig->compute_instance : mig->compute_profile) == which)
                found[(*count)++] = (nvmlComputeInstance_t)(void *)
                    &sn_mig_handles[instance.parent.index][i][mig->epoch % SN_EPOCHS];
        }
    } while (sn_again(&instance.parent, &code));
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile_id,
                                                            nvmlComputeInstance_t *instances, unsigned int *count)
{
    nvmlComputeInstance_t found[SN_MAX_MIG_DEVICES];
    struct kind kind = {0};
    unsigned int number = 0;
    nvmlReturn_t code = copy_kind(handle, profile_id, &kind);

    if (code == NVML_SUCCESS)
        code = copy_handles(handle, false, profile_id, found, &number);
    if (code == NVML_SUCCESS && (instances == NULL || count == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS) {
        *count = number;
        memcpy(instances, found, number * sizeof(found[0]));
    }
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                               nvmlComputeInstance_t *instance)
{
    nvmlComputeInstance_t found[SN_MAX_MIG_DEVICES];
    unsigned int number = 0;
    nvmlReturn_t code = copy_handles(handle, true, id, found, &number);

    if (code == NVML_SUCCESS && instance == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS && number == 0)
        return NVML_ERROR_NOT_FOUND;
    if (code == NVML_SUCCESS)
        *instance = found[0];
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    struct sn_mig_read read;
    struct sn_mig copy = {0};
    nvmlReturn_t code = sn_mig_open(&read, (nvmlDevice_t)(void *)handle);

    if (code != NVML_SUCCESS)
        return code;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    do {
        code = sn_mig_look(&read);
        if (code == NVML_SUCCESS)
            copy = *read.mig;
    } while (sn_again(&read.parent, &code));
    if (code == NVML_SUCCESS)
        *info = (nvmlComputeInstanceInfo_t){
            .device = sn_handle(read.parent.index),
            .gpuInstance = sn_instance_of(read.parent.index, &copy),
            .id = copy.compute_instance,
            .profileId = copy.compute_profile,
            .placement = {copy.compute_start, copy.compute_slices},
        };
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, sn_compute_instance_info_v1 *info)
{
    nvmlComputeInstanceInfo_t from;
    nvmlReturn_t code = nvmlComputeInstanceGetInfo_v2(handle, info == NULL ? NULL : &from);

    if (code == NVML_SUCCESS)
        *info = (sn_compute_instance_info_v1){from.device, from.gpuInstance, from.id, from.profileId};
    return code;
}
