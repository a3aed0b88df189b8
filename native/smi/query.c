/* nvidia-smi -q: the document's head, its GPUs, and which of its sections are wanted. */
#define _GNU_SOURCE
#include "query.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "../nvml/driver.h"
#include "../nvml/thermal.h"
#include "query_reads.h"

#define USAGE 2
#define WIDE_SINCE 580000u
#define V13_SINCE 580000u
#define NARROW_COLUMN 42u
#define WIDE_COLUMN 55u
#define TURING 6u
#define HOST_VGPU 3u

static const struct {
    const char *name;
    unsigned int section;
    unsigned int since;
    unsigned int before;
} sections[] = {
    {"MEMORY", MEMORY, 0, 0},
    {"UTILIZATION", UTILIZATION, 0, 0},
    {"ECC", ECC, 0, 0},
    {"TEMPERATURE", TEMPERATURE, 0, 0},
    {"POWER", POWER, 0, 0},
    {"CLOCK", CLOCK, 0, 0},
    {"COMPUTE", COMPUTE, 0, 0},
    {"PIDS", PIDS, 0, 0},
    {"PERFORMANCE", PERFORMANCE, 0, 0},
    {"SUPPORTED_CLOCKS", SUPPORTED_CLOCKS, 0, 0},
    {"PAGE_RETIREMENT", PAGE_RETIREMENT, 0, 0},
    {"ACCOUNTING", ACCOUNTING, 0, 0},
    {"ENCODER_STATS", ENCODER_STATS, 0, 0},
    {"SUPPORTED_GPU_TARGET_TEMP", SUPPORTED_GPU_TARGET_TEMP, 0, 0},
    {"VOLTAGE", VOLTAGE, 0, 0},
    {"FBC_STATS", FBC_STATS, 0, 0},
    {"ROW_REMAPPER", ROW_REMAPPER, 0, 0},
    {"RESET_STATUS", RESET_STATUS, 0, 580000},
    {"GSP_FIRMWARE_VERSION", GSP_FIRMWARE_VERSION, 550000, 0},
    {"POWER_SMOOTHING", POWER_SMOOTHING, 570000, 0},
    {"POWER_PROFILES", POWER_PROFILES, 570000, 0},
};

/* The section of a name of `length` bytes, or 0. */
static unsigned int section_of(const char *name, size_t length, unsigned int driver)
{
    for (unsigned int i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        if (strlen(sections[i].name) == length && strncasecmp(sections[i].name, name, length) == 0 &&
            sections[i].since <= driver && (sections[i].before == 0 || driver < sections[i].before))
            return sections[i].section;
    return 0;
}

/* The sections that a list names; false where it names another. */
static bool parse_sections(const char *list, unsigned int driver, unsigned int *wanted)
{
    *wanted = 0;
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        unsigned int section = length == 0 ? 0 : section_of(list, length, driver);
        if (length != 0 && section == 0)
            return false;
        *wanted |= section;
        list += length;
        list += *list == ',';
    }
    return true;
}

int smi_query_check(const struct smi_options *options)
{
    unsigned int wanted;

    if (options->display != NULL && (options->xml || options->unit)) {
        printf("Invalid combination of input arguments: --display/-d flags can not be combined with %s flags.\n",
               options->xml ? "-x/--xml-format" : "-u/--unit");
        return USAGE;
    }
    if (options->unit && options->ids != NULL) {
        printf("Specified unit index %s is not valid\n", options->ids);
        return USAGE;
    }
    if (options->display == NULL || parse_sections(options->display, sn_driver(), &wanted))
        return 0;
    puts("Failed to parse --display/-d flags");
    return USAGE;
}

/* The head of either document, and what it says of the software. */
static void tell_software(const struct page *page, unsigned int driver, const char *what)
{
    char value[SMI_VERSION_BYTES];
    char cuda[16];
    time_t seconds = time(NULL);
    struct tm local;
    int version;
    nvmlReturn_t code;

    if (page->xml)
        printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_%s_v%u.dtd\">\n<nvidia_smi_log>\n",
               what, driver >= V13_SINCE ? 13 : 12);
    else
        puts("\n==============NVSMI LOG==============\n");
    strftime(value, sizeof(value), "%a %b %e %H:%M:%S %Y", localtime_r(&seconds, &local));
    page_leaf(page, "timestamp", "Timestamp", value);
    code = nvmlSystemGetDriverVersion(value, sizeof(value));
    page_leaf(page, "driver_version", "Driver Version", code == NVML_SUCCESS ? value : smi_words(code));
    code = nvmlSystemGetCudaDriverVersion_v2(&version);
    if (code == NVML_SUCCESS)
        smi_cuda_text(version, cuda);
    page_leaf(page, "cuda_version", "CUDA Version", code == NVML_SUCCESS ? cuda : smi_words(code));
    if (!page->xml)
        putchar('\n');
}

static unsigned int traits_of(nvmlDevice_t device, unsigned int driver)
{
    unsigned int architecture;
    unsigned int mode;
    int celsius;
    unsigned int traits =
        sn_get_margin(device, &celsius) == NVML_ERROR_NOT_SUPPORTED ? LIMITS_ABSOLUTE : LIMITS_RELATIVE;

    if (nvmlDeviceGetVirtualizationMode(device, &mode) == NVML_SUCCESS && mode == HOST_VGPU)
        traits |= VGPU_HOST;
    if (nvmlDeviceGetArchitecture(device, &architecture) != NVML_SUCCESS)
        return driver < 550000 ? traits | ECC_BY_LOCATION : traits;
    if (architecture == TURING)
        return traits | ECC_SUMMED;
    return traits | (architecture < TURING ? ECC_BY_LOCATION : ECC_SPLIT);
}

static nvmlReturn_t tell_gpu(struct page *page, nvmlDevice_t device, unsigned int driver, const unsigned int *wanted)
{
    struct subject subject = {.device = device, .driver = driver};
    unsigned int ecc, pending;
    nvmlPciInfo_t pci;
    nvmlReturn_t code = nvmlDeviceGetPciInfo_v3(device, &pci);

    if (code == NVML_ERROR_NOT_SUPPORTED) {
        strcpy(pci.busId, smi_words(code));
    } else if (code != NVML_SUCCESS) {
        printf(page->xml ? "\t<error_string>%s%s</error_string>\n\n" : "%s%s\n\n",
               "Unable to determine the PCI bus id for the target device: ", smi_words(code));
        return code;
    }
    subject.traits = traits_of(device, driver);
    subject.ecc_on = nvmlDeviceGetEccMode(device, &ecc, &pending) == NVML_SUCCESS && ecc == 1;
    printf(page->xml ? "\t<gpu id=\"%s\">\n" : "GPU %s\n", pci.busId);
    page->depth++;
    query_walk(page, query_board, &subject, wanted);
    query_walk(page, query_work, &subject, wanted);
    query_walk(page, query_energy, &subject, wanted);
    page->depth--;
    puts(page->xml ? "\t</gpu>\n" : "");
    return NVML_SUCCESS;
}

/* S-class systems, of which no node has any. */
static int tell_units(struct page *page, unsigned int driver)
{
    tell_software(page, driver, "unit");
    page_leaf(page, NULL, "HIC Info", "N/A");
    page_open(page, "hic_info", NULL);
    page_close(page, "hic_info", NULL);
    page_leaf(page, "attached_units", "Attached Units", "0");
    puts(page->xml ? "</nvidia_smi_log>" : "");
    return 0;
}

int smi_query(const struct smi_options *options, const struct smi_devices *devices)
{
    unsigned int driver = sn_driver();
    struct page page = {options->xml, options->xml ? 1 : 0, driver >= WIDE_SINCE ? WIDE_COLUMN : NARROW_COLUMN};
    unsigned int wanted = 0;
    unsigned int count = 0;
    char attached[16];
    nvmlReturn_t worst = NVML_SUCCESS;

    if (options->display != NULL)
        parse_sections(options->display, driver, &wanted);
    if (options->unit)
        return tell_units(&page, driver);
    tell_software(&page, driver, "device");
    if (nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
        count = devices->count;
    snprintf(attached, sizeof(attached), "%u", count);
    page_leaf(&page, "attached_gpus", "Attached GPUs", attached);
    for (unsigned int i = 0; i < devices->count; i++) {
        nvmlReturn_t code = tell_gpu(&page, devices->handle[i], driver, options->display == NULL ? NULL : &wanted);
        if (code != NVML_SUCCESS)
            worst = code;
    }
    if (options->xml)
        puts("</nvidia_smi_log>");
    return smi_exit_code(worst);
}
