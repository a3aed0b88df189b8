/* nvidia-smi of a simulated node: picks the view, opens the library, answers with nvidia-smi's words and exit codes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "smi.h"

#define USAGE 2

struct command {
    const char *brief; /* or null */
    const char *name;
    int (*view)(void);
};

/* In the order in which one wins over another. */
static const struct command commands[] = {
    {"-h", "--help", NULL},
    {NULL, "--version", smi_versions},
    {"-L", "--list-gpus", smi_list},
};

static const struct command table = {NULL, NULL, smi_table};

static bool means(const struct command *command, const char *argument)
{
    return strcmp(argument, command->name) == 0 || (command->brief != NULL && strcmp(argument, command->brief) == 0);
}

static const struct command *choose(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        for (int j = 1; j < count; j++)
            if (means(&commands[i], arguments[j]))
                return &commands[i];
    return &table;
}

/* 0, or the exit code after a line that says what is wrong. */
static int check_arguments(const struct command *chosen, int count, char **arguments)
{
    int times = 0;

    if (chosen == &table && count > 1) {
        printf("ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n\n", arguments[1]);
        return SMI_FAILED;
    }
    for (int i = 1; i < count; i++)
        times += means(chosen, arguments[i]);
    if (times > 1 && chosen->view != NULL) {
        printf("ERROR: Only one command can be run at a time. Please run 'nvidia-smi -h' for help.\n\n");
        return USAGE;
    }
    for (int i = 1; i < count; i++) {
        if (means(chosen, arguments[i]))
            continue;
        printf("ERROR: Option %s is not valid for this command. Please run 'nvidia-smi -h' for help.\n\n",
               arguments[i]);
        return USAGE;
    }
    return 0;
}

static int refuse(nvmlReturn_t code)
{
    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
             "Make sure that the latest NVIDIA driver is installed and running.\n");
    else
        printf("Failed to initialize NVML: %s\n", smi_words(code));
    return smi_exit_code(code);
}

static int run(const struct command *command)
{
    int status = command->view();
    nvmlReturn_t code = nvmlShutdown();

    if (code == NVML_SUCCESS)
        return status;
    printf("Failed to properly shut down NVML: %s\n\n", smi_words(code));
    return SMI_FAILED;
}

int main(int count, char **arguments)
{
    const struct command *chosen = choose(count, arguments);
    nvmlReturn_t code;
    int status;

    if (chosen->view == NULL) {
        status = check_arguments(chosen, count, arguments);
        if (status == 0)
            smi_help();
        return status;
    }
    code = nvmlInitWithFlags(0);
    if (code != NVML_SUCCESS)
        return refuse(code);
    status = check_arguments(chosen, count, arguments);
    return status == 0 ? run(chosen) : status;
}
