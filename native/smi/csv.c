/* A csv view: a line that names the columns, then a line for each row, whose fields are parted by a comma and a blank.
 *
 * What has no value says why in brackets and has no unit then. */
#define _GNU_SOURCE
#include "csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "lists.h"

#define USAGE 2

/* How the values shall be written. */
struct format {
    bool csv;
    bool header;
    bool units;
};

static const char *const subjects[] = {
    [SMI_GPU] = "gpu",
    [SMI_COMPUTE_APPS] = "compute-apps",
    [SMI_ACCOUNTED_APPS] = "accounted-apps",
    [SMI_SUPPORTED_CLOCKS] = "supported-clocks",
    [SMI_RETIRED_PAGES] = "retired-pages",
    [SMI_REMAPPED_ROWS] = "remapped-rows",
};

static struct smi_query query_of(enum smi_subject subject)
{
    if (subject == SMI_GPU)
        return (struct smi_query){smi_gpu_columns, smi_gpu_column_count, NULL};
    return smi_list_query(subject);
}

/* Steps through the words between commas of *list; those of no letter are none. Null at the end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list + strspn(*list, ",");

    *length = strcspn(word, ",");
    *list = word + *length;
    return *length == 0 ? NULL : word;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return name != NULL && strlen(name) == length && memcmp(word, name, length) == 0;
}

static const struct smi_column *find_column(const struct smi_query *query, const char *word, size_t length)
{
    for (size_t i = 0; i < query->count; i++) {
        const struct smi_column *column = &query->columns[i];
        if (column->since > smi_driver_release())
            continue;
        if (is_word(word, length, column->name) || is_word(word, length, column->alias))
            return column;
    }
    return NULL;
}

/* False if there is a word that means nothing. */
static bool read_format(const char *list, struct format *format)
{
    size_t length;

    *format = (struct format){.csv = false, .header = true, .units = true};
    for (const char *word; (word = next_word(&list, &length)) != NULL;) {
        if (is_word(word, length, "csv"))
            format->csv = true;
        else if (is_word(word, length, "noheader"))
            format->header = false;
        else if (is_word(word, length, "nounits"))
            format->units = false;
        else
            return false;
    }
    return true;
}

int smi_csv_check(const struct smi_options *options)
{
    struct smi_query query = query_of(options->subject);
    const char *list = options->fields;
    struct format format;
    size_t length;

    if (options->format == NULL) {
        puts("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n");
        return USAGE;
    }
    for (const char *word; (word = next_word(&list, &length)) != NULL;) {
        if (find_column(&query, word, length) != NULL)
            continue;
        printf("Field \"%.*s\" is not a valid field to query.\n\n", (int)length, word);
        return USAGE;
    }
    if (!read_format(options->format, &format)) {
        puts("Format modifier is not recognized.");
        return USAGE;
    }
    if (!format.csv) {
        puts("Format modifier --format=csv is mandatory.");
        return USAGE;
    }
    return 0;
}

static nvmlReturn_t read_cell(const struct smi_column *column, const struct smi_row *row, char out[SMI_CELL_BYTES])
{
    unsigned long long number = 0;
    unsigned int word = 0;
    nvmlReturn_t code;

    if (column->text != NULL)
        return column->text(row, column->which, out);
    if (column->word != NULL) {
        code = column->word(row->device, &word);
        number = word;
    } else {
        code = column->number(row->device, column->which, &number);
    }
    if (code == NVML_SUCCESS)
        column->style(number, out);
    return code;
}

static void print_row(const struct smi_query *query, const char *list, const struct format *format,
                      const struct smi_row *row)
{
    const char *before = "";
    size_t length;

    for (const char *word; (word = next_word(&list, &length)) != NULL; before = ", ") {
        const struct smi_column *column = find_column(query, word, length);
        char text[SMI_CELL_BYTES];
        nvmlReturn_t code = read_cell(column, row, text);
        if (code != NVML_SUCCESS)
            printf("%s[%s]", before, smi_words(code));
        else if (column->unit != NULL && format->units)
            printf("%s%s %s", before, text, column->unit);
        else
            printf("%s%s", before, text);
    }
    putchar('\n');
}

void smi_csv_header(const struct smi_options *options)
{
    struct smi_query query = query_of(options->subject);
    const char *list = options->fields;
    const char *before = "";
    struct format format;
    size_t length;

    read_format(options->format, &format);
    if (!format.header)
        return;
    for (const char *word; (word = next_word(&list, &length)) != NULL; before = ", ") {
        const struct smi_column *column = find_column(&query, word, length);
        printf("%s%s", before, column->name);
        if (column->unit != NULL)
            printf(" [%s]", column->unit);
    }
    putchar('\n');
}

static void print_rows(const struct smi_query *query, const struct smi_options *options, const struct format *format,
                       nvmlDevice_t device)
{
    struct smi_rows rows = {.count = 0};
    struct smi_row row = {.device = device};

    query->rows(device, &rows);
    for (unsigned int i = 0; i < rows.count; i++) {
        row.item = &rows.items[i];
        print_row(query, options->fields, format, &row);
    }
    free(rows.items);
}

int smi_csv(const struct smi_options *options, const struct smi_devices *devices)
{
    struct smi_query query = query_of(options->subject);
    struct format format;

    read_format(options->format, &format);
    for (unsigned int i = 0; i < devices->count; i++) {
        struct smi_row row = {.device = devices->handle[i]};
        if (query.rows != NULL)
            print_rows(&query, options, &format, devices->handle[i]);
        else
            print_row(&query, options->fields, &format, &row);
    }
    return 0;
}

void smi_csv_help(enum smi_subject subject)
{
    struct smi_query query = query_of(subject);

    printf("Properties for --query-%s=PROPERTY,... --format=csv[,noheader][,nounits]:\n\n", subjects[subject]);
    for (size_t i = 0; i < query.count; i++) {
        const struct smi_column *column = &query.columns[i];
        if (column->since > smi_driver_release())
            continue;
        printf("\"%s\"", column->name);
        if (column->alias != NULL)
            printf(" or \"%s\"", column->alias);
        putchar('\n');
    }
}
