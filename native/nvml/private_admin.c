/* What nvidia-smi's administrative commands ask the private table: resets, compute policies, boost sliders. */
#define _GNU_SOURCE
#include "private.h"
#include "setters.h"

#define ARCHITECTURE_HOPPER 9
#define POLICY_TIMESLICE 0
#define TIMESLICE_DEFAULT 0
#define SLIDER_VBOOST 0
#define VBOOST_STEPS 5 /* 0 to 4 */

/* 20: not the GPU that the machine started its screen on. */
nvmlReturn_t sn_private_is_primary(nvmlDevice_t device, unsigned int *primary)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *primary = 0;
    return NVML_SUCCESS;
}

/* 169 */
nvmlReturn_t sn_private_reset_fabric(unsigned int *state)
{
    *state = 0;
    return NVML_SUCCESS;
}

/* 182: every GPU can be reset by itself, so a group needs no memory. */
nvmlReturn_t sn_private_reset_group(void **group)
{
    static char nobody;

    *group = &nobody;
    return NVML_SUCCESS;
}

/* 183: the bus ids that a group has besides those it was made of. */
nvmlReturn_t sn_private_reset_members(const void *group, char **bus_ids, unsigned int *count)
{
    (void)group;
    (void)bus_ids;
    *count = 0;
    return NVML_SUCCESS;
}

/* 168 */
nvmlReturn_t sn_private_reset(unsigned int count, const nvmlDevice_t *devices)
{
    nvmlReturn_t code = NVML_SUCCESS;

    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++)
        code = sn_reset_gpu(devices[i]);
    return code;
}

static void put_one(struct sn_private_settings *settings, unsigned int what, unsigned int value)
{
    settings->count = 1;
    settings->setting[0] = (struct sn_private_setting){what, value};
}

/* 193 */
nvmlReturn_t sn_private_policies(nvmlDevice_t device, struct sn_private_settings *policies)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    put_one(policies, POLICY_TIMESLICE, TIMESLICE_DEFAULT);
    return NVML_SUCCESS;
}

/* 192 */
nvmlReturn_t sn_private_set_policy(nvmlDevice_t device)
{
    nvmlReturn_t code = sn_refuse_device(device);

    return code == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_NO_PERMISSION : code;
}

/* Hopper can raise its voltage. */
static nvmlReturn_t has_vboost(nvmlDevice_t device)
{
    unsigned int architecture;
    nvmlReturn_t code = sn_get_word(device, offsetof(struct sn_device, architecture), &architecture);

    return code == NVML_SUCCESS && architecture != ARCHITECTURE_HOPPER ? NVML_ERROR_NOT_SUPPORTED : code;
}

/* 194 */
nvmlReturn_t sn_private_slider_limits(nvmlDevice_t device, struct sn_private_settings *sliders)
{
    nvmlReturn_t code = has_vboost(device);

    if (code == NVML_SUCCESS)
        put_one(sliders, SLIDER_VBOOST, VBOOST_STEPS);
    return code;
}

/* 195 */
nvmlReturn_t sn_private_sliders(nvmlDevice_t device, struct sn_private_settings *sliders)
{
    nvmlReturn_t code = has_vboost(device);

    if (code == NVML_SUCCESS)
        put_one(sliders, SLIDER_VBOOST, 0);
    return code;
}

/* 196 */
nvmlReturn_t sn_private_set_slider(nvmlDevice_t device)
{
    nvmlReturn_t code = has_vboost(device);

    return code == NVML_SUCCESS ? NVML_ERROR_NO_PERMISSION : code;
}
