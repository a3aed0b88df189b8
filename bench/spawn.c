/* What it takes to start a program and see it end: for each program one line with the medians of RUNS of wall time and
   of CPU time, in milliseconds, and of its CPU time to the first program's. Two programs take turns, so that what disturbs
   one disturbs the other.
   Usage: spawn RUNS [NAME=VALUE…] PROGRAM [ARGUMENT…] [-- [NAME=VALUE…] PROGRAM [ARGUMENT…]]
   Output goes to /dev/null; exit codes are not judged, but a program that a signal ends is not measured. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { PROGRAMS = 2, VARIABLES = 1024 };

struct program {
    char **words;
    char *environ[VARIABLES];
    double *wall;
    double *cpu;
    double *ratio;
};

extern char **environ;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double milliseconds(const struct timeval *time)
{
    return (double)time->tv_sec * 1e3 + (double)time->tv_usec / 1e3;
}

/* The program's own variables come before the others of the same name. */
static void prepare(struct program *program, char **words, int runs)
{
    int count = 0;

    for (; *words != NULL && strchr(*words, '=') != NULL && count < VARIABLES - 1; words++)
        program->environ[count++] = *words;
    for (char **other = environ; *other != NULL && count < VARIABLES - 1; other++)
        program->environ[count++] = *other;
    program->words = words;
    program->wall = calloc((size_t)runs, sizeof(double));
    program->cpu = calloc((size_t)runs, sizeof(double));
    program->ratio = calloc((size_t)runs, sizeof(double));
    if (*words == NULL || program->wall == NULL || program->cpu == NULL || program->ratio == NULL) {
        fprintf(stderr, "spawn: no program\n");
        exit(2);
    }
}

static void once(struct program *program, int run, const posix_spawn_file_actions_t *quiet)
{
    struct timespec from, to;
    struct rusage used;
    pid_t child;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &from);
    if (posix_spawn(&child, program->words[0], quiet, NULL, program->words, program->environ) != 0) {
        perror(program->words[0]);
        exit(1);
    }
    wait4(child, &status, 0, &used);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s: signal %d\n", program->words[0], WTERMSIG(status));
        exit(1);
    }
    program->wall[run] = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    program->cpu[run] = milliseconds(&used.ru_utime) + milliseconds(&used.ru_stime);
}

static double median(double *values, int runs)
{
    qsort(values, (size_t)runs, sizeof(double), ascending);
    return values[runs / 2];
}

int main(int count, char **arguments)
{
    static struct program programs[PROGRAMS];
    int runs = count > 2 ? atoi(arguments[1]) : 0, listed = 0;
    posix_spawn_file_actions_t quiet;

    for (int i = 2; runs > 0 && i < count && listed < PROGRAMS; i++) {
        char **words = &arguments[i];
        while (i < count && strcmp(arguments[i], "--") != 0)
            i++;
        arguments[i] = NULL;
        prepare(&programs[listed++], words, runs);
    }
    if (listed == 0) {
        fprintf(stderr, "usage: spawn RUNS [NAME=VALUE...] PROGRAM [ARGUMENT...] [-- ...]\n");
        return 2;
    }
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    for (int run = 0; run < runs; run++)
        for (int i = 0; i < listed; i++) {
            once(&programs[i], run, &quiet);
            programs[i].ratio[run] = programs[i].cpu[run] / programs[0].cpu[run];
        }
    for (int i = 0; i < listed; i++)
        printf("%.3f %.3f %.4f\n", median(programs[i].wall, runs), median(programs[i].cpu, runs),
               median(programs[i].ratio, runs));
    return 0;
}
