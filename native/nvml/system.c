/* What belongs to the node as a whole: versions, process names, and what no simulated node has. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "access.h"
#include "init.h"

/* Copies the node's record; these functions answer before nvmlInit, as soon as there is an image. */
static nvmlReturn_t copy_node(struct sn_node *node)
{
    const struct sn_image *image;
    nvmlReturn_t code = sn_image_before_init(&image);

    for (int tries = SN_TRIES; code == NVML_SUCCESS && tries > 0; tries--) {
        uint64_t done = sn_done(image);
        *node = sn_slot_of(image, done)->node;
        if (!sn_whole(image, done))
            continue;
        node->driver_version[sizeof(node->driver_version) - 1] = '\0';
        node->nvml_version[sizeof(node->nvml_version) - 1] = '\0';
        return NVML_SUCCESS;
    }
    return code == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    struct sn_node node;
    nvmlReturn_t code = copy_node(&node);

    return code == NVML_SUCCESS ? sn_put_text(node.driver_version, version, length) : code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    struct sn_node node;
    nvmlReturn_t code = copy_node(&node);

    return code == NVML_SUCCESS ? sn_put_text(node.nvml_version, version, length) : code;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    struct sn_node node;
    nvmlReturn_t code = copy_node(&node);

    if (code != NVML_SUCCESS)
        return code;
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = (int)node.cuda_version;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* The branch that a release belongs to: r550_00 for 550.163.01. */
NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *info, unsigned int length)
{
    struct sn_node node;
    char branch[sizeof(info->branch)];
    nvmlReturn_t code = copy_node(&node);

    if (code != NVML_SUCCESS)
        return code;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != SN_TAG(nvmlSystemDriverBranchInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(branch, sizeof(branch), "r%ld_00", strtol(node.driver_version, NULL, 10));
    return sn_put_text(branch, info->branch, length < sizeof(info->branch) ? length : sizeof(info->branch));
}

static nvmlReturn_t none(unsigned int *count)
{
    if (sn_image() == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
    return none(count);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *count, void *entries)
{
    (void)entries;
    return none(count);
}

NVML_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    return none(count);
}

NVML_EXPORT nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned int *count)
{
    return none(count);
}

/* Of none there is no first. */
static nvmlReturn_t no_such_index(void)
{
    return sn_image() == NULL ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_EXPORT nvmlReturn_t nvmlUnitGetHandleByIndex(void)
{
    return no_such_index();
}

NVML_EXPORT nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(void)
{
    return no_such_index();
}

NVML_EXPORT nvmlReturn_t nvmlGetBlacklistDeviceInfoByIndex(void)
{
    return no_such_index();
}
