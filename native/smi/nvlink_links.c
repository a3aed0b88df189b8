/* The NVLinks of one GPU: the parts of nvidia-smi nvlink. */
#define _GNU_SOURCE
#include "nvlink.h"

#include <stdio.h>

enum {
    FIELD_LINK_COUNT = 91,
    FIELD_REMOTE_LINK = 146,
    FIELD_REPLAY_ERRORS = 161,
    FIELD_RECOVERY_ERRORS = 162,
    FIELD_CRC_ERRORS = 163,
    FIELD_SPEED_MBPS = 164,
    FIELD_ACTIVE = 165
};

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, unsigned int capability,
                                           unsigned int *result);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci);

/* A part of the view, and what it says if there is no active link to tell of. */
struct part {
    const char *subject;  /* or null: nothing */
    bool inactive;        /* tells of inactive links, too */
    bool by_architecture; /* needs to know the GPU's */
    /* `number` is what to call the link. */
    void (*print)(const struct smi_links *links, unsigned int link, unsigned int number);
};

static nvmlReturn_t get_field(nvmlDevice_t device, unsigned int id, unsigned int link, unsigned long long *value)
{
    nvmlFieldValue_t field = {.fieldId = id, .scopeId = link};
    nvmlReturn_t code = nvmlDeviceGetFieldValues(device, 1, &field);

    if (code == NVML_SUCCESS)
        code = field.nvmlReturn;
    if (code == NVML_SUCCESS)
        *value = field.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? field.value.uiVal : field.value.ullVal;
    return code;
}

static bool is_active(const struct smi_links *links, unsigned int link)
{
    unsigned long long active;

    return link < links->count && get_field(links->device, FIELD_ACTIVE, link, &active) == NVML_SUCCESS && active != 0;
}

static void print_status(const struct smi_links *links, unsigned int link, unsigned int number)
{
    unsigned long long mbps;

    (void)number;
    if (is_active(links, link) && get_field(links->device, FIELD_SPEED_MBPS, link, &mbps) == NVML_SUCCESS)
        printf("\t Link %u: %llu.%03llu GB/s\n", link, mbps / 1000, mbps % 1000);
    else
        printf("\t Link %u: <inactive>\n", link);
}

static void print_capabilities(const struct smi_links *links, unsigned int link, unsigned int number)
{
    static const char *const capabilities[] = {
        "P2P is supported",
        "Access to system memory supported",
        "P2P atomics supported",
        "System memory atomics supported",
        "SLI is supported",
        "Link is supported",
    };

    (void)number;
    for (unsigned int i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
        unsigned int result;
        if (nvmlDeviceGetNvLinkCapability(links->device, link, i, &result) == NVML_SUCCESS)
            printf("\t Link %u, %s: %s\n", link, capabilities[i], result != 0 ? "true" : "false");
    }
}

static void print_remote_bus_id(const struct smi_links *links, unsigned int link, unsigned int number)
{
    nvmlPciInfo_t pci;

    (void)number;
    if (nvmlDeviceGetNvLinkRemotePciInfo_v2(links->device, link, &pci) == NVML_SUCCESS)
        printf("\t Link %u: %s\n", link, pci.busId);
}

/* The only part that counts active links instead of telling their own numbers, as nvidia-smi does. */
static void print_remote_link(const struct smi_links *links, unsigned int link, unsigned int number)
{
    unsigned long long remote;
    nvmlPciInfo_t pci;
    nvmlReturn_t code;

    if (nvmlDeviceGetNvLinkRemotePciInfo_v2(links->device, link, &pci) != NVML_SUCCESS)
        return;
    code = get_field(links->device, FIELD_REMOTE_LINK, link, &remote);
    if (code == NVML_SUCCESS)
        printf("\t Link %u: Remote Device %s: Link %llu\n", number, pci.busId, remote);
    else
        printf("\t Link %u: Not Supported\n", number);
}

static void print_errors(const struct smi_links *links, unsigned int link, unsigned int number)
{
    static const struct {
        const char *name;
        unsigned int field;
    } errors[] = {{"Replay", FIELD_REPLAY_ERRORS}, {"Recovery", FIELD_RECOVERY_ERRORS}, {"CRC", FIELD_CRC_ERRORS}};

    (void)number;
    for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        unsigned long long count;
        if (get_field(links->device, errors[i].field, link, &count) == NVML_SUCCESS)
            printf("\t Link %u: %s Errors: %llu\n", link, errors[i].name, count);
        else
            printf("\t Link %u: %s Errors: N/A\n", link, errors[i].name);
    }
    putchar('\n');
}

static bool any_active(const struct smi_links *links)
{
    for (unsigned int link = 0; link < links->count; link++)
        if (is_active(links, link))
            return true;
    return false;
}

static void print_part(const struct part *part, const struct smi_links *links)
{
    bool any = links->only == SMI_ALL_LINKS ? any_active(links) : is_active(links, links->only);

    if (!any && part->subject != NULL) {
        printf("NVML: Unable to retrieve NVLink %s ", part->subject);
        if (links->only == SMI_ALL_LINKS)
            puts("as all links are inActive");
        else
            printf("for link %u - inActive\n", links->only);
    }
    if (!any)
        return;
    for (unsigned int link = 0, number = 0; link < links->count; link++) {
        if (links->only != SMI_ALL_LINKS && links->only != link)
            continue;
        if (part->inactive || is_active(links, link))
            part->print(links, link, links->only == SMI_ALL_LINKS ? number++ : link);
    }
}

static const struct part parts[SMI_LINK_PARTS] = {
    [SMI_LINK_STATUS] = {"information", true, false, print_status},
    [SMI_LINK_CAPABILITIES] = {NULL, false, false, print_capabilities},
    [SMI_LINK_REMOTE_BUS_IDS] = {NULL, false, false, print_remote_bus_id},
    [SMI_LINK_REMOTE_LINKS] = {NULL, false, false, print_remote_link},
    [SMI_LINK_ERRORS] = {"errors", false, true, print_errors},
};

nvmlReturn_t smi_print_links(enum smi_link_part which, const struct smi_links *links)
{
    const struct part *part = &parts[which];
    unsigned int architecture;
    nvmlReturn_t code = part->by_architecture ? nvmlDeviceGetArchitecture(links->device, &architecture) : NVML_SUCCESS;

    if (code != NVML_SUCCESS) {
        printf("NVML: Unable to get architecture: %s\n", nvmlErrorString(code));
        return code;
    }
    print_part(part, links);
    return NVML_SUCCESS;
}

unsigned int smi_count_links(nvmlDevice_t device)
{
    unsigned long long count = 0;

    return get_field(device, FIELD_LINK_COUNT, 0, &count) == NVML_SUCCESS ? (unsigned int)count : 0;
}
