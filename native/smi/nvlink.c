/* nvidia-smi nvlink: links, whether they are up, what they can do, where they lead. */
#define _GNU_SOURCE
#include "nvlink.h"

#include <stdio.h>
#include <stdlib.h>

#include "subcommand.h"

#define USAGE 2

/* A GPU without links is passed over. An error ends the view. */
static nvmlReturn_t print_device(nvmlDevice_t device, unsigned int only, const bool wanted[SMI_LINK_PARTS])
{
    struct smi_links links = {.device = device, .count = smi_count_links(device), .only = only};
    char name[SMI_NAME_BYTES];
    char uuid[SMI_NAME_BYTES];
    unsigned int index;
    nvmlReturn_t code;

    if (links.count == 0)
        return NVML_SUCCESS;
    code = nvmlDeviceGetIndex(device, &index);
    if (code != NVML_SUCCESS)
        return code;
    code = nvmlDeviceGetName(device, name, sizeof(name));
    if (code != NVML_SUCCESS) {
        puts("Failed to get NVLink device name");
        return code;
    }
    code = nvmlDeviceGetUUID(device, uuid, sizeof(uuid));
    printf("GPU %u: %s (UUID: %s)\n", index, name, code == NVML_SUCCESS ? uuid : "N/A");
    code = NVML_SUCCESS;
    for (unsigned int i = 0; i < SMI_LINK_PARTS && code == NVML_SUCCESS; i++)
        if (wanted[i])
            code = smi_print_links((enum smi_link_part)i, &links);
    return code;
}

static void print_help(void)
{
    puts("\n"
         "    nvlink -- Show the NVLinks of the GPUs.\n"
         "\n"
         "    Usage: nvidia-smi nvlink [options]\n"
         "\n"
         "    [-h | --help]: This text\n"
         "    [-i | --id]: Only these GPUs: indices, UUIDs, serial numbers or PCI bus ids, with commas between\n"
         "    [-l | --link]: Only this link\n"
         "    [-s | --status]: Whether a link is up, and how fast it is\n"
         "    [-c | --capabilities]: What a link can do\n"
         "    [-p | --pcibusid]: The PCI bus id at the other end\n"
         "    [-R | --remotelinkinfo]: The PCI bus id and the link's number at the other end\n"
         "    [-e | --errorcounters]: Errors counted\n");
}

/* False if there is something else than a number; one that is negative in 32 bits means all links. */
static bool read_link(const char *text, unsigned int *link)
{
    char *end;

    *link = SMI_ALL_LINKS;
    if (text == NULL)
        return true;
    *link = (unsigned int)strtoul(text, &end, 0);
    if (*link > INT_MAX)
        *link = SMI_ALL_LINKS;
    return end != text && *end == '\0';
}

int smi_nvlink(int count, char **arguments)
{
    bool wanted[SMI_LINK_PARTS] = {false};
    bool help = false;
    bool has_value = false;
    const char *ids = NULL;
    const char *link = NULL;
    const struct smi_argument known[] = {
        {"-h", "--help", &help, NULL},
        {"-i", "--id", &has_value, &ids},
        {"-l", "--link", &has_value, &link},
        {"-s", "--status", &wanted[SMI_LINK_STATUS], NULL},
        {"-c", "--capabilities", &wanted[SMI_LINK_CAPABILITIES], NULL},
        {"-p", "--pcibusid", &wanted[SMI_LINK_REMOTE_BUS_IDS], NULL},
        {"-R", "--remotelinkinfo", &wanted[SMI_LINK_REMOTE_LINKS], NULL},
        {"-e", "--errorcounters", &wanted[SMI_LINK_ERRORS], NULL},
    };
    struct smi_devices devices;
    unsigned int only;
    int status = smi_read_arguments(count, arguments, known, sizeof(known) / sizeof(known[0]));

    if (status == 0 && !read_link(link, &only)) {
        printf("Option \"%s\" is invalid for \"-l\".\n", link);
        status = USAGE;
    }
    if (status == 0 && (help || count == 0)) {
        print_help();
        return 0;
    }
    if (status == 0)
        status = smi_find_devices(ids, &devices);
    for (unsigned int i = 0; status == 0 && i < devices.count; i++)
        status = smi_exit_code(print_device(devices.handle[i], only, wanted));
    return status;
}
