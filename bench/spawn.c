/* Milliseconds from starting a program to its end: the median of RUNS, one line for each program. Two programs take turns,
   so that what disturbs one disturbs the other. Usage: spawn RUNS PROGRAM [ARGUMENT…] [-- PROGRAM [ARGUMENT…]]
   Output goes to /dev/null; exit codes are not judged. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { PROGRAMS = 2 };

extern char **environ;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double once(char **words, const posix_spawn_file_actions_t *quiet)
{
    struct timespec from, to;
    pid_t child;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (posix_spawn(&child, words[0], quiet, NULL, words, environ) != 0) {
        perror(words[0]);
        exit(1);
    }
    waitpid(child, NULL, 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
}

int main(int count, char **arguments)
{
    char **programs[PROGRAMS];
    double *times[PROGRAMS];
    int runs = count > 2 ? atoi(arguments[1]) : 0, listed = 0;
    posix_spawn_file_actions_t quiet;
    for (int i = 2; i < count && listed < PROGRAMS; i++) {
        programs[listed] = &arguments[i];
        times[listed++] = runs > 0 ? calloc((size_t)runs, sizeof(double)) : NULL;
        while (i < count && strcmp(arguments[i], "--") != 0) {
            i++;
        }
        arguments[i] = NULL;
    }
    if (runs <= 0 || listed == 0) {
        fprintf(stderr, "usage: spawn RUNS PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]\n");
        return 2;
    }
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    for (int run = 0; run < runs; run++) {
        for (int i = 0; i < listed; i++) {
            times[i][run] = once(programs[i], &quiet);
        }
    }
    for (int i = 0; i < listed; i++) {
        qsort(times[i], (size_t)runs, sizeof(double), ascending);
        printf("%.3f\n", times[i][runs / 2]);
    }
    return 0;
}
