/* nvidia-smi of a simulated node: picks the view, opens the library, answers with nvidia-smi's words and exit codes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "csv.h"
#include "query.h"
#include "subcommand.h"

#define USAGE 2

/* An option that stands alone. */
struct command {
    const char *brief; /* or null */
    const char *name;
    int (*view)(void); /* null: help, which needs no driver */
};

/* A word that stands first and takes the rest. */
struct subcommand {
    const char *word;
    int (*view)(int count, char **arguments);
};

/* A view of GPUs, shown once or again and again. */
struct view {
    const char *no_file;                              /* what is said of a log file that cannot be made */
    int (*check)(const struct smi_options *options);  /* or null; 0, or the exit code after a line */
    void (*begin)(const struct smi_options *options); /* or null; once, before the first round */
    int (*show)(const struct smi_options *options, const struct smi_devices *devices);
};

/* In the order in which one wins over another. */
static const struct command commands[] = {
    {"-h", "--help", NULL},
    {NULL, "--version", smi_versions},
    {"-L", "--list-gpus", smi_list},
};

static const struct subcommand subcommands[] = {
    {"topo", smi_topo},
    {"nvlink", smi_nvlink},
};

static const struct view table = {"the log file", NULL, NULL, smi_table};
static const struct view query = {"the log file", smi_query_check, NULL, smi_query};
static const struct view csv = {"log file", NULL, smi_csv_header, smi_csv};

static bool means(const struct command *command, const char *argument)
{
    size_t length = strcspn(argument, "=");

    return (strlen(command->name) == length && memcmp(argument, command->name, length) == 0) ||
           (command->brief != NULL && strlen(command->brief) == length &&
            memcmp(argument, command->brief, length) == 0);
}

/* Null: a view. */
static const struct command *choose(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        for (int j = 1; j < count; j++)
            if (means(&commands[i], arguments[j]))
                return &commands[i];
    return NULL;
}

/* 0, or the exit code after a line that says what is wrong. */
static int check_arguments(const struct command *chosen, int count, char **arguments)
{
    int times = 0;

    for (int i = 1; i < count; i++)
        times += means(chosen, arguments[i]);
    if (times > 1 && chosen->view != NULL) {
        printf("ERROR: Only one command can be run at a time. Please run 'nvidia-smi -h' for help.\n\n");
        return USAGE;
    }
    for (int i = 1; i < count; i++) {
        const char *wrong = arguments[i];
        if (means(chosen, wrong)) {
            if (strchr(wrong, '=') == NULL)
                continue;
            wrong = strchr(wrong, '=') + 1;
        }
        printf("ERROR: Option %s is not valid for this command. Please run 'nvidia-smi -h' for help.\n\n", wrong);
        return USAGE;
    }
    return 0;
}

static int refuse(nvmlReturn_t code)
{
    char library[64];

    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
             "Make sure that the latest NVIDIA driver is installed and running.\n");
    else
        printf("Failed to initialize NVML: %s\n", smi_words(code));
    if (code == NVML_ERROR_LIB_RM_VERSION_MISMATCH && smi_library_text(library, sizeof(library)))
        printf("NVML library version: %s\n", library);
    return smi_exit_code(code);
}

static void wait_for(unsigned int ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* The file that -f names, which takes what views print; -1 if there is none, or after a line that says why not. */
static int open_log(const struct smi_options *options, const struct view *view)
{
    int file;

    if (options->filename == NULL)
        return -1;
    file = open(options->filename, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        printf("Failed to create %s %s\n\n", view->no_file, options->filename);
    return file;
}

/* All rounds are about the devices of the first; one that fails is the last. */
static int show(const struct view *view, const struct smi_options *options)
{
    struct smi_devices devices = {.count = 0};
    int status;
    int log;

    if (options->looping && options->loop_ms == 0) {
        puts("Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.\n");
        return USAGE;
    }
    log = open_log(options, view);
    if (log < 0 && options->filename != NULL)
        return SMI_FAILED;
    status = view->check == NULL ? 0 : view->check(options);
    if (status == 0 && !options->unit)
        status = smi_find_devices(options->ids, &devices);
    if (status != 0)
        return status;
    if (log >= 0)
        dup2(log, STDOUT_FILENO);
    if (view->begin != NULL)
        view->begin(options);
    for (;;) {
        status = view->show(options, &devices);
        if (!options->looping || status != 0)
            return status;
        fflush(stdout);
        wait_for(options->loop_ms);
    }
}

static int show_view(int count, char **arguments)
{
    struct smi_options options;
    int status = smi_read_options(count - 1, arguments + 1, &options);

    if (status != 0)
        return status;
    if (options.help != SMI_NONE) {
        smi_csv_help(options.help);
        return 0;
    }
    if (options.subject == SMI_NONE)
        return show(options.query ? &query : &table, &options);
    status = smi_csv_check(&options);
    return status == 0 ? show(&csv, &options) : status;
}

static int close_library(int status)
{
    nvmlReturn_t code = nvmlShutdown();

    if (code == NVML_SUCCESS)
        return status;
    printf("Failed to properly shut down NVML: %s\n\n", smi_words(code));
    return SMI_FAILED;
}

/* Null: the first argument is no subcommand's. */
static const struct subcommand *find_subcommand(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
        if (count > 1 && strcmp(arguments[1], subcommands[i].word) == 0)
            return &subcommands[i];
    return NULL;
}

int main(int count, char **arguments)
{
    const struct subcommand *subcommand = find_subcommand(count, arguments);
    const struct command *chosen = subcommand != NULL ? NULL : choose(count, arguments);
    nvmlReturn_t code;
    int status;

    if (chosen != NULL && chosen->view == NULL) {
        status = check_arguments(chosen, count, arguments);
        if (status == 0)
            smi_help();
        return status;
    }
    code = nvmlInitWithFlags(0);
    if (code != NVML_SUCCESS)
        return refuse(code);
    if (subcommand != NULL)
        return close_library(subcommand->view(count - 2, arguments + 2));
    if (chosen == NULL)
        return close_library(show_view(count, arguments));
    status = check_arguments(chosen, count, arguments);
    return status == 0 ? close_library(chosen->view()) : status;
}
