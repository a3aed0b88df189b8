/* Which options there are, which go together, and what is said of those that do not. */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens.h"

#define USAGE 2
#define FAILED 255
#define DEFAULT_SECONDS 5
#define DEFAULT_MILLISECONDS 100

/* What a command line is about; each takes some of the options, and the first that is not among them ends it. */
enum mode { SUMMARY, CSV, CHANGE, MODES };

#define IN_SUMMARY (1u << SUMMARY)
#define IN_CSV (1u << CSV)
#define IN_CHANGE (1u << CHANGE)

enum kind { FLAG, VALUE, MAYBE_VALUE };

enum name {
    QUERY,
    XML,
    UNIT,
    DISPLAY,
    IDS,
    FILENAME,
    LOOP,
    LOOP_MS,
    FORMAT,
    SUBJECTS,
    HELPS = SUBJECTS + SMI_REMAPPED_ROWS,
    KNOWN = HELPS + SMI_REMAPPED_ROWS
};

static const struct option {
    const char *brief; /* or null */
    const char *name;
    enum kind kind;
    unsigned int modes;
} known[KNOWN] = {
    [QUERY] = {"-q", "--query", FLAG, IN_SUMMARY},
    [XML] = {"-x", "--xml-format", FLAG, IN_SUMMARY},
    [UNIT] = {"-u", "--unit", FLAG, IN_SUMMARY},
    [DISPLAY] = {"-d", "--display", VALUE, IN_SUMMARY},
    [IDS] = {"-i", "--id", VALUE, IN_SUMMARY | IN_CSV | IN_CHANGE},
    [FILENAME] = {"-f", "--filename", VALUE, IN_SUMMARY | IN_CSV},
    [LOOP] = {"-l", "--loop", MAYBE_VALUE, IN_SUMMARY | IN_CSV},
    [LOOP_MS] = {"-lms", "--loop-ms", MAYBE_VALUE, IN_SUMMARY | IN_CSV},
    [FORMAT] = {NULL, "--format", VALUE, IN_CSV},
    /* In the order of enum smi_subject. */
    [SUBJECTS] = {NULL, "--query-gpu", VALUE, IN_CSV},
    {NULL, "--query-compute-apps", VALUE, IN_CSV},
    {NULL, "--query-accounted-apps", VALUE, IN_CSV},
    {NULL, "--query-supported-clocks", VALUE, IN_CSV},
    {NULL, "--query-retired-pages", VALUE, IN_CSV},
    {NULL, "--query-remapped-rows", VALUE, IN_CSV},
    [HELPS] = {NULL, "--help-query-gpu", FLAG, 0},
    {NULL, "--help-query-compute-apps", FLAG, 0},
    {NULL, "--help-query-accounted-apps", FLAG, 0},
    {NULL, "--help-query-supported-clocks", FLAG, 0},
    {NULL, "--help-query-retired-pages", FLAG, 0},
    {NULL, "--help-query-remapped-rows", FLAG, 0},
};

struct reading {
    const struct smi_tokens *tokens;
    unsigned int times[KNOWN];
    const char *value[KNOWN];           /* the last one given, or null */
    const struct smi_token *refused[MODES]; /* the first that the mode does not take, or null */
};

static size_t find(const char *text)
{
    size_t i = 0;

    while (i < KNOWN && strcmp(text, known[i].name) != 0 &&
           (known[i].brief == NULL || strcmp(text, known[i].brief) != 0))
        i++;
    return i;
}

/* An option is no value; nor is, where there need not be one, what begins with a dash and no digit. */
static bool is_value(enum kind kind, const char *text)
{
    if (find(text) != KNOWN)
        return false;
    return kind == VALUE || text[0] != '-' || (text[1] >= '0' && text[1] <= '9');
}

static void refuse(struct reading *reading, const struct smi_token *token, unsigned int but_modes)
{
    for (unsigned int mode = 0; mode < MODES; mode++)
        if ((but_modes & 1u << mode) == 0 && reading->refused[mode] == NULL)
            reading->refused[mode] = token;
}

static int read_tokens(struct reading *reading)
{
    for (size_t i = 0; i < reading->tokens->count; i++) {
        const struct smi_token *token = &reading->tokens->token[i];
        size_t name = find(token->text);
        if (name == KNOWN) {
            refuse(reading, token, 0);
            while (reading->tokens->token[i].more)
                i++;
            continue;
        }
        refuse(reading, token, known[name].modes);
        reading->times[name]++;
        if (known[name].kind == FLAG)
            continue;
        if (i + 1 < reading->tokens->count && is_value(known[name].kind, token[1].text)) {
            reading->value[name] = token[1].text;
            if (name == LOOP || name == LOOP_MS)
                reading->value[LOOP] = reading->value[LOOP_MS] = token[1].text;
            i++;
        } else if (known[name].kind == VALUE) {
            printf("ERROR: Option %s is missing its value. Please run 'nvidia-smi -h' for help.\n\n", token->text);
            return FAILED;
        }
    }
    return 0;
}

static int refuse_token(const struct smi_token *token, enum mode mode)
{
    printf("ERROR: Option %s", token->text);
    for (; token->more; token++)
        printf("=%s", token[1].text);
    printf(" is not recognized. Please run 'nvidia-smi -h'%s.\n\n", mode == SUMMARY ? "" : " for help");
    return mode == CSV ? USAGE : FAILED;
}

/* Of the options from `first` on, one for each subject, the first in their order that is there. */
static enum smi_subject first_subject(const struct reading *reading, size_t first)
{
    for (unsigned int i = 0; i < SMI_REMAPPED_ROWS; i++)
        if (reading->times[first + i] != 0)
            return (enum smi_subject)(i + 1);
    return SMI_NONE;
}

static unsigned int count_subjects(const struct reading *reading)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < SMI_REMAPPED_ROWS; i++)
        count += reading->times[SUBJECTS + i] != 0;
    return count;
}

/* Whether the words after -l, whole, are a number. */
static bool read_number(const char *text, unsigned int *out)
{
    char *end;
    unsigned long number;

    if (text == NULL || text[0] == '-')
        return false;
    errno = 0;
    number = strtoul(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || number > UINT_MAX)
        return false;
    *out = (unsigned int)number;
    return true;
}

/* Seconds if -l stands anywhere, whichever option the number follows. */
static unsigned int period(const struct reading *reading)
{
    bool seconds = reading->times[LOOP] != 0;
    unsigned int number = seconds ? DEFAULT_SECONDS : DEFAULT_MILLISECONDS;

    read_number(reading->value[LOOP], &number);
    if (!seconds)
        return number;
    return number > UINT_MAX / 1000 ? UINT_MAX : number * 1000;
}

static int check_query(const struct smi_options *options)
{
    const char *missing = NULL;

    if (options->unit)
        missing = "-u/--unit to run a unit query";
    else if (options->xml)
        missing = "-x/--xml-format to run an XML query";
    else if (options->display != NULL)
        missing = "-d/--display to run a filtered query";
    if (options->query || missing == NULL)
        return 0;
    printf("Invalid combination of input arguments. Specify -q/--query and %s.  Please run 'nvidia-smi -h' for "
           "help.\n\n",
           missing);
    return USAGE;
}

static void fill(struct smi_options *options, const struct reading *reading)
{
    enum smi_subject subject = first_subject(reading, SUBJECTS);

    *options = (struct smi_options){
        .query = reading->times[QUERY] != 0,
        .xml = reading->times[XML] != 0,
        .unit = reading->times[UNIT] != 0,
        .display = reading->value[DISPLAY],
        .ids = reading->value[IDS],
        .filename = reading->value[FILENAME],
        .looping = reading->times[LOOP] + reading->times[LOOP_MS] != 0,
        .loop_ms = period(reading),
        .help = first_subject(reading, HELPS),
        .subject = subject,
        .fields = subject == SMI_NONE ? NULL : reading->value[SUBJECTS + subject - 1],
        .format = reading->value[FORMAT],
    };
}

static int check(const struct reading *reading, const struct smi_options *options)
{
    enum mode mode = options->subject != SMI_NONE ? CSV : SUMMARY;

    if (reading->times[IDS] > 1)
        mode = CHANGE;
    else if (options->help != SMI_NONE)
        return 0;
    if (mode == CSV && count_subjects(reading) > 1) {
        puts("Only one --query-* switch can be used at a time.");
        return USAGE;
    }
    if (reading->refused[mode] != NULL)
        return refuse_token(reading->refused[mode], mode);
    if (mode == CHANGE) {
        puts("Input combination for device modification is not valid.\n");
        return FAILED;
    }
    return mode == SUMMARY ? check_query(options) : 0;
}

int smi_read_options(int count, char **arguments, struct smi_options *options)
{
    struct smi_tokens tokens;
    struct reading reading = {.tokens = &tokens};
    int status;

    smi_cut(count, arguments, &tokens);
    status = read_tokens(&reading);
    fill(options, &reading);
    if (status == 0)
        status = check(&reading, options);
    free(tokens.token);
    return status;
}
