/* Parts of a GPU's document of which there are as many as there are. */
#define _GNU_SOURCE
#include "query_lists.h"

#include <stdio.h>

#include "processes.h"
#include "query_reads.h"

#define MOST_MEMORY_CLOCKS 32u
#define MOST_GRAPHICS_CLOCKS 1024u
#define FEWER_GRAPHICS_CLOCKS 256u
#define MORE_SINCE 570000u
#define MOST_SAMPLES 512u
#define MOST_RETIRED 1024u
#define POWER_SAMPLES 0
#define MW_PER_W 1e3
#define US_PER_S 1e6
#define NARROW_COLUMN 42u

/* All of a MIG device can be told, or it is left out. */
static bool is_whole(const struct subject *mig)
{
    char value[QUERY_VALUE_BYTES];

    for (const struct element *element = query_mig; element->depth != 0; element++) {
        if (element[1].depth <= element->depth && query_read_value(mig, element, value) != NVML_SUCCESS)
            return false;
    }
    return true;
}

/* XML does not indent them within their list. */
void list_mig(struct page *page, const struct subject *subject, const struct element *element)
{
    unsigned int most = 0;
    unsigned int found = 0;

    page_open(page, element->xml, NULL);
    if (nvmlDeviceGetMaxMigDeviceCount(subject->device, &most) != NVML_SUCCESS)
        most = 0;
    for (unsigned int i = 0; i < most; i++) {
        struct subject mig = {.driver = subject->driver};
        if (nvmlDeviceGetMigDeviceHandleByIndex(subject->device, i, &mig.device) != NVML_SUCCESS || !is_whole(&mig))
            continue;
        found++;
        page->depth -= page->xml;
        page_open(page, "mig_device", "MIG Device");
        query_walk(page, query_mig, &mig, NULL);
        page_close(page, "mig_device", "MIG Device");
        page->depth += page->xml;
    }
    if (page->xml && found == 0)
        puts("\t\t\tNone");
    page_close(page, element->xml, NULL);
}

static nvmlReturn_t survey_samples(const struct subject *subject, const struct element *element, char texts[5][32])
{
    nvmlSample_t samples[MOST_SAMPLES];
    nvmlValueType_t type;
    unsigned int count = MOST_SAMPLES;
    double scale = element->which == POWER_SAMPLES ? MW_PER_W : 1;
    double most = 0;
    double least = UINT32_MAX;
    double sum = 0;
    nvmlReturn_t code = nvmlDeviceGetSamples(subject->device, element->which, 0, &type, &count, samples);

    if (code == NVML_SUCCESS && count == 0)
        code = NVML_ERROR_NOT_FOUND;
    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int i = 0; i < count; i++) {
        double value = samples[i].sampleValue.uiVal;
        sum += value;
        most = value > most ? value : most;
        least = value < least ? value : least;
    }
    snprintf(texts[0], sizeof(texts[0]), "%.2f sec",
             (double)(samples[count - 1].timeStamp - samples[0].timeStamp) / US_PER_S);
    snprintf(texts[1], sizeof(texts[1]), "%u", count);
    snprintf(texts[2], sizeof(texts[2]), element->format, most / scale);
    snprintf(texts[3], sizeof(texts[3]), element->format, least / scale);
    snprintf(texts[4], sizeof(texts[4]), element->format, sum / count / scale);
    return NVML_SUCCESS;
}

void list_samples(struct page *page, const struct subject *subject, const struct element *element)
{
    static const char *const labels[] = {"Duration", "Number of Samples", "Max", "Min", "Avg"};
    char texts[5][32];
    nvmlReturn_t code = survey_samples(subject, element, texts);

    page_open(page, element->xml, element->text);
    for (unsigned int i = 0; i < 5; i++)
        page_leaf(page, NULL, labels[i], code == NVML_SUCCESS ? texts[i] : smi_words(code));
    page_close(page, element->xml, element->text);
}

/* Lines have the number only. */
void list_retired(struct page *page, const struct subject *subject, const struct element *element)
{
    unsigned long long addresses[MOST_RETIRED];
    char number[16];
    unsigned int count = MOST_RETIRED;
    nvmlReturn_t code = nvmlDeviceGetRetiredPages(subject->device, element->which, &count, addresses);

    snprintf(number, sizeof(number), "%u", count);
    page_leaf(page, NULL, element->text, code == NVML_SUCCESS ? number : smi_words(code));
    page_open(page, element->xml, NULL);
    page_leaf(page, "retired_count", NULL, code == NVML_SUCCESS ? number : smi_words(code));
    if (code == NVML_SUCCESS) {
        page_open(page, "retired_pagelist", NULL);
        for (unsigned int i = 0; i < count; i++) {
            char address[32];
            snprintf(address, sizeof(address), "0x%016llx", addresses[i]);
            page_open(page, "retired_page", NULL);
            page_leaf(page, "retired_page_address", NULL, address);
            page_close(page, "retired_page", NULL);
        }
        page_close(page, "retired_pagelist", NULL);
    } else {
        page_leaf(page, "retired_pagelist", NULL, smi_words(code));
    }
    page_close(page, element->xml, NULL);
}

/* Up to 565 there is no room for the steps of the longest lists, and that is what is said of them. */
static void list_graphics_clocks(struct page *page, const struct subject *subject, unsigned int memory_mhz)
{
    unsigned int mhz[MOST_GRAPHICS_CLOCKS];
    unsigned int count = subject->driver < MORE_SINCE ? FEWER_GRAPHICS_CLOCKS : MOST_GRAPHICS_CLOCKS;
    char text[32];
    nvmlReturn_t code = nvmlDeviceGetSupportedGraphicsClocks(subject->device, memory_mhz, &count, mhz);

    if (code != NVML_SUCCESS)
        page_leaf(page, "supported_graphics_clock", "Graphics", smi_words(code));
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++) {
        snprintf(text, sizeof(text), "%u MHz", mhz[i]);
        page_leaf(page, "supported_graphics_clock", "Graphics", text);
    }
}

void list_supported_clocks(struct page *page, const struct subject *subject, const struct element *element)
{
    unsigned int mhz[MOST_MEMORY_CLOCKS];
    unsigned int count = MOST_MEMORY_CLOCKS;
    char text[32];
    nvmlReturn_t code = nvmlDeviceGetSupportedMemoryClocks(subject->device, &count, mhz);

    if (code != NVML_SUCCESS) {
        page_leaf(page, element->xml, element->text, smi_words(code));
        return;
    }
    page_open(page, element->xml, element->text);
    for (unsigned int i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "%u MHz", mhz[i]);
        page_open(page, "supported_mem_clock", NULL);
        page_leaf(page, "value", "Memory", text);
        page_open(page, NULL, "");
        list_graphics_clocks(page, subject, mhz[i]);
        page_close(page, NULL, "");
        page_close(page, "supported_mem_clock", NULL);
    }
    page_close(page, element->xml, element->text);
}

struct listing {
    struct page *page;
    const struct subject *subject;
    const struct element *element;
    unsigned int told;
};

static void tell_process(void *context, const struct sn_process *process, unsigned int types)
{
    struct listing *listing = context;
    struct subject subject = *listing->subject;

    subject.process = process;
    subject.process_types = types;
    if (listing->told++ == 0)
        page_open(listing->page, NULL, listing->element->text);
    page_open(listing->page, "process_info", NULL);
    query_walk(listing->page, query_process, &subject, NULL);
    page_close(listing->page, "process_info", NULL);
}

/* In lines they keep to the narrow column of old. */
void list_processes(struct page *page, const struct subject *subject, const struct element *element)
{
    struct listing listing = {page, subject, element, 0};
    unsigned int column = page->column;

    page_open(page, element->xml, NULL);
    page->column = NARROW_COLUMN;
    smi_each_process(subject->device, tell_process, &listing);
    page->column = column;
    if (listing.told == 0)
        page_leaf(page, NULL, element->text, "None");
    else
        page_close(page, NULL, element->text);
    page_close(page, element->xml, NULL);
}

/* Nobody was accounted for yet. */
void list_accounted(struct page *page, const struct subject *subject, const struct element *element)
{
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetAccountingPids(subject->device, &count, NULL);

    if (code != NVML_SUCCESS) {
        page_leaf(page, element->xml, element->text, smi_words(code));
        return;
    }
    page_leaf(page, NULL, element->text, "None");
    page_open(page, element->xml, NULL);
    page_close(page, element->xml, NULL);
}
