/* The GPU instances that a GPU is partitioned into. A handle stands for the GPU, the instance's id and its profile: an
 * instance of another profile with the same id is another one. */
#define _GNU_SOURCE
#include "mig.h"

#include "handles.h"

static struct nvmlDevice_st handles[SN_MAX_DEVICES][SN_GPU_INSTANCE_IDS][NVML_GPU_INSTANCE_PROFILE_COUNT];

static nvmlGpuInstance_t handle_of(unsigned int index, unsigned int id, unsigned int profile)
{
    if (id >= SN_GPU_INSTANCE_IDS || profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NULL;
    return (nvmlGpuInstance_t)(void *)&handles[index][id][profile];
}

nvmlReturn_t sn_instance_open(struct sn_instance *instance, nvmlGpuInstance_t handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)handles;
    size_t number = at / sizeof(struct nvmlDevice_st);

    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (at >= sizeof(handles) || at % sizeof(struct nvmlDevice_st) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    instance->profile = (unsigned int)(number % NVML_GPU_INSTANCE_PROFILE_COUNT);
    instance->id = (unsigned int)(number / NVML_GPU_INSTANCE_PROFILE_COUNT % SN_GPU_INSTANCE_IDS);
    return sn_open(&instance->parent,
                   sn_handle((unsigned int)(number / NVML_GPU_INSTANCE_PROFILE_COUNT / SN_GPU_INSTANCE_IDS)));
}

static const struct sn_gpu_instance *find_instance(const struct sn_device *device, unsigned int id)
{
    for (unsigned int i = 0; i < SN_MAX_GPU_INSTANCES; i++)
        if (device->gpu_instance[i].present && device->gpu_instance[i].id == id)
            return &device->gpu_instance[i];
    return NULL;
}

nvmlReturn_t sn_instance_look(struct sn_instance *instance)
{
    nvmlReturn_t code = sn_look(&instance->parent);

    if (code != NVML_SUCCESS)
        return code;
    instance->of = find_instance(instance->parent.device, instance->id);
    return instance->of == NULL || instance->of->profile != instance->profile ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlGpuInstance_t sn_instance_of(unsigned int index, const struct sn_mig *mig)
{
    return handle_of(index, mig->gpu_instance, mig->gpu_profile);
}

/* NOT_SUPPORTED unless the GPU is in MIG mode. */
static nvmlReturn_t is_on(const struct sn_device *device)
{
    if (device->mig_mode_current.status == NVML_SUCCESS && device->mig_mode_current.value != 0)
        return NVML_SUCCESS;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* By the profile's id; the array has room for as many as the profile can have. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                                   nvmlGpuInstance_t *instances, unsigned int *count)
{
    nvmlGpuInstance_t found[SN_MAX_GPU_INSTANCES];
    struct sn_read read;
    unsigned int number = 0;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (instances == NULL || count == NULL)
        return sn_bad_argument(device);
    do {
        const struct sn_mig_profile *profile = NULL;
        number = 0;
        code = sn_look(&read);
        if (code == NVML_SUCCESS)
            code = is_on(read.device);
        for (unsigned int i = 0; code == NVML_SUCCESS && i < SN_MAX_MIG_PROFILES; i++)
            if (read.device->mig_profile[i].present && read.device->mig_profile[i].id == profile_id)
                profile = &read.device->mig_profile[i];
        if (code == NVML_SUCCESS && profile == NULL)
            code = NVML_ERROR_INVALID_ARGUMENT;
        for (unsigned int i = 0; code == NVML_SUCCESS && i < SN_MAX_GPU_INSTANCES; i++) {
            const struct sn_gpu_instance *instance = &read.device->gpu_instance[i];
            if (instance->present && instance->profile == profile->number)
                found[number++] = handle_of(read.index, instance->id, instance->profile);
        }
    } while (sn_again(&read, &code));
    if (code != NVML_SUCCESS)
        return code;
    *count = number;
    memcpy(instances, found, number * sizeof(found[0]));
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstance_t *instance)
{
    nvmlGpuInstance_t found = NULL;
    struct sn_read read;
    nvmlReturn_t code = sn_open(&read, device);

    if (code != NVML_SUCCESS)
        return code;
    if (instance == NULL)
        return sn_bad_argument(device);
    do {
        code = sn_look(&read);
        if (code == NVML_SUCCESS)
            code = is_on(read.device);
        if (code == NVML_SUCCESS) {
            const struct sn_gpu_instance *of = find_instance(read.device, id);
            found = of == NULL ? NULL : handle_of(read.index, id, of->profile);
            code = found == NULL ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
        }
    } while (sn_again(&read, &code));
    if (code == NVML_SUCCESS)
        *instance = found;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    struct sn_instance instance;
    struct sn_mig_profile profile = {0};
    nvmlGpuInstancePlacement_t placement = {0};
    nvmlDevice_t device;
    nvmlReturn_t code = sn_instance_open(&instance, handle);

    if (code != NVML_SUCCESS)
        return code;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    do {
        code = sn_instance_look(&instance);
        if (code == NVML_SUCCESS)
            placement = (nvmlGpuInstancePlacement_t){instance.of->start, instance.of->size};
    } while (sn_again(&instance.parent, &code));
    device = sn_handle(instance.parent.index);
    if (code == NVML_SUCCESS)
        code = sn_mig_profile(device, instance.profile, &profile);
    if (code == NVML_SUCCESS)
        *info = (nvmlGpuInstanceInfo_t){device, instance.id, profile.id, placement};
    return code;
}
