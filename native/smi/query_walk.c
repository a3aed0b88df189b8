/* One walk over the table for both forms: what there is, in its order, each by its source. */
#define _GNU_SOURCE
#include <stdio.h>

#include "query_reads.h"

#define DEEPEST 8
#define DEPRECATED_TEXT "Requested functionality has been deprecated"

/* Any of the structures that are filled, with room to spare. */
union structure {
    unsigned char bytes[1024];
    uint64_t aligned;
};

static const char *word_for(const char *const *words, uint64_t value)
{
    unsigned int at = 0;

    while (at < value && words[at + 1] != NULL)
        at++;
    return words[at];
}

void query_put(const struct subject *subject, const struct element *element, uint64_t value, char *out)
{
    if (element->show != NULL)
        element->show(subject, element, value, out);
    else if (element->words != NULL)
        snprintf(out, QUERY_VALUE_BYTES, "%s", word_for(element->words, value));
    else
        snprintf(out, QUERY_VALUE_BYTES, element->format == NULL ? "%llu" : element->format,
                 (unsigned long long)value);
}

static nvmlReturn_t get_from_structure(const struct subject *subject, const struct element *element,
                                       unsigned long long *value)
{
    union structure structure = {{0}};
    nvmlReturn_t code = element->fill(subject->device, &structure);
    uint32_t word;

    if (element->kind == SN_WIDE) {
        memcpy(value, structure.bytes + element->which, sizeof(*value));
    } else {
        memcpy(&word, structure.bytes + element->which, sizeof(word));
        *value = word;
    }
    return code;
}

static nvmlReturn_t get_of_pair(const struct subject *subject, const struct element *element, unsigned long long *value)
{
    unsigned int pair[2] = {0};
    nvmlReturn_t code = element->pair(subject->device, &pair[0], &pair[1]);

    *value = pair[element->which];
    return code;
}

static nvmlReturn_t get_field(const struct subject *subject, const struct element *element, unsigned long long *value)
{
    nvmlFieldValue_t field = {.fieldId = element->field, .scopeId = element->scope};
    nvmlReturn_t code = nvmlDeviceGetFieldValues(subject->device, 1, &field);

    *value = field.value.ullVal;
    if (field.valueType == NVML_VALUE_TYPE_SIGNED_INT)
        *value = (unsigned long long)(long long)field.value.siVal;
    return code == NVML_SUCCESS ? field.nvmlReturn : code;
}

static nvmlReturn_t get_number(const struct subject *subject, const struct element *element, unsigned long long *value)
{
    unsigned int word = 0;
    nvmlReturn_t code;

    if (element->pair != NULL)
        return get_of_pair(subject, element, value);
    if (element->fill != NULL)
        return get_from_structure(subject, element, value);
    if (element->field != 0)
        return get_field(subject, element, value);
    if (element->cell != 0)
        return sn_get_one(subject->device, element->kind, element->cell, value);
    code = element->word != NULL ? element->word(subject->device, &word)
                                 : element->word_of(subject->device, element->which, &word);
    *value = word;
    return code;
}

nvmlReturn_t query_read_value(const struct subject *subject, const struct element *element, char *out)
{
    unsigned long long value = 0;
    nvmlReturn_t code;

    if (element->read != NULL)
        return element->read(subject, element, out);
    if (element->name != NULL)
        return element->name(subject->device, out, SMI_NAME_BYTES);
    if (element->text_cell != 0)
        return sn_get_text(subject->device, element->text_cell, element->which, out, QUERY_VALUE_BYTES);
    code = get_number(subject, element, &value);
    if (code == NVML_SUCCESS)
        query_put(subject, element, value, out);
    return code;
}

/* The value, or why there is none. */
static void put_text(const struct subject *subject, const struct element *element, char *out)
{
    bool deprecated = element->deprecated != 0 && subject->driver >= element->deprecated;
    nvmlReturn_t code = deprecated ? NVML_SUCCESS : query_read_value(subject, element, out);

    if (deprecated)
        snprintf(out, QUERY_VALUE_BYTES, "%s", DEPRECATED_TEXT);
    else if (code != NVML_SUCCESS)
        snprintf(out, QUERY_VALUE_BYTES, "%s", smi_words(code));
}

static bool has_source(const struct element *element)
{
    return element->read != NULL || element->name != NULL || element->word != NULL || element->word_of != NULL ||
           element->pair != NULL || element->fill != NULL || element->field != 0 || element->cell != 0 ||
           element->text_cell != 0;
}

static bool is_told(const struct page *page, const struct subject *subject, const struct element *element,
                    const unsigned int *sections)
{
    if (element->since > subject->driver || (element->before != 0 && element->before <= subject->driver))
        return false;
    if (element->traits != 0 && (element->traits & subject->traits) == 0)
        return false;
    if (page->xml || element->depth > 1)
        return true;
    return sections == NULL ? (element->sections & ASKED) == 0 : (element->sections & *sections) != 0;
}

static void tell_leaf(const struct page *page, const struct subject *subject, const struct element *element)
{
    char value[QUERY_VALUE_BYTES + 2] = "0x";
    char *text = value + strlen(value);
    bool prefixed;

    if ((page->xml ? element->xml : element->text) == NULL)
        return;
    prefixed = element->hexadecimal && !page->xml && query_read_value(subject, element, text) == NVML_SUCCESS;
    if (!prefixed)
        put_text(subject, element, text);
    page_leaf(page, element->xml, element->text, prefixed ? value : text);
}

/* Whether a group's own source lets it be told; if not, a leaf says why. */
static bool opens(const struct page *page, const struct subject *subject, const struct element *element)
{
    char value[QUERY_VALUE_BYTES];
    nvmlReturn_t code = has_source(element) ? query_read_value(subject, element, value) : NVML_SUCCESS;

    if (code != NVML_SUCCESS)
        page_leaf(page, element->xml, element->text, smi_words(code));
    return code == NVML_SUCCESS;
}

void query_walk(struct page *page, const struct element *table, const struct subject *subject,
                const unsigned int *sections)
{
    const struct element *open[DEEPEST];
    unsigned int height = 0;
    unsigned int untold = DEEPEST; /* deeper rows than this belong to what is not told */

    for (const struct element *element = table; element->depth != 0 || height != 0; element++) {
        while (height != 0 && open[height - 1]->depth >= element->depth) {
            height--;
            page_close(page, open[height]->xml, open[height]->text);
        }
        if (element->depth == 0)
            return;
        if (element->depth > untold)
            continue;
        untold = element->depth;
        if (!is_told(page, subject, element, sections))
            continue;
        if (element->list != NULL) {
            element->list(page, subject, element);
        } else if (element[1].depth <= element->depth) {
            tell_leaf(page, subject, element);
        } else if (opens(page, subject, element)) {
            page_open(page, element->xml, element->text);
            open[height++] = element;
            untold = DEEPEST;
        }
    }
}
