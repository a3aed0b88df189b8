/* Nanoseconds per call of NVML getters, on one thread and on two at once, beside the clocks of the same run.
   Usage: getters. Prints "NAME THREADS NANOSECONDS" lines: what the quickest tenth of the rounds
   stay below, of the slower thread. What neighbours on the machine's cores take in the others is not the getters'. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Rounds are shorter than a scheduler's slice, so that a preempted one is an outlier; the getters take
   turns, so that a slow spell of the machine strikes them all. */
enum { CALLS = 20000, ROUNDS = 501, THREADS = 2 };

typedef struct device *handle;
typedef int (*one_value)(handle, void *);
typedef int (*temperature)(handle, unsigned, unsigned *);
typedef int (*by_index)(unsigned, handle *);

static handle gpu;
static one_value utilization, memory, power;
static temperature temperature_of;
static by_index handle_by_index;

static void call_temperature(void)
{
    unsigned value;
    for (int i = 0; i < CALLS; i++) {
        temperature_of(gpu, 0, &value);
    }
}

static void call_utilization(void)
{
    unsigned value[2];
    for (int i = 0; i < CALLS; i++) {
        utilization(gpu, value);
    }
}

static void call_memory(void)
{
    unsigned long long value[3];
    for (int i = 0; i < CALLS; i++) {
        memory(gpu, value);
    }
}

static void call_power(void)
{
    unsigned value;
    for (int i = 0; i < CALLS; i++) {
        power(gpu, &value);
    }
}

static void call_handle(void)
{
    handle value;
    for (int i = 0; i < CALLS; i++) {
        handle_by_index(0, &value);
    }
}

static void call_coarse(void)
{
    struct timespec value;
    for (int i = 0; i < CALLS; i++) {
        clock_gettime(CLOCK_MONOTONIC_COARSE, &value);
    }
}

static void call_monotonic(void)
{
    struct timespec value;
    for (int i = 0; i < CALLS; i++) {
        clock_gettime(CLOCK_MONOTONIC, &value);
    }
}

static const struct subject {
    const char *name;
    void (*calls)(void);
} subjects[] = {
    {"temperature", call_temperature}, {"utilization", call_utilization}, {"memory", call_memory},
    {"power", call_power},             {"handle", call_handle},           {"coarse", call_coarse},
    {"monotonic", call_monotonic},
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    double rounds[SUBJECTS][ROUNDS];
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SUBJECTS; i++) {
            struct timespec from, to;
            pthread_barrier_wait(worker->start);
            clock_gettime(CLOCK_MONOTONIC, &from);
            subjects[i].calls();
            clock_gettime(CLOCK_MONOTONIC, &to);
            double seconds = (double)(to.tv_sec - from.tv_sec), rest = (double)(to.tv_nsec - from.tv_nsec);
            worker->rounds[i][round] = (seconds * 1e9 + rest) / CALLS;
        }
    }
    return NULL;
}

static void measure(int threads)
{
    static struct worker workers[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i].start = &start;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    for (int subject = 0; subject < SUBJECTS; subject++) {
        double slowest = 0;
        for (int i = 0; i < threads; i++) {
            double *rounds = workers[i].rounds[subject];
            qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
            slowest = rounds[ROUNDS / 10] > slowest ? rounds[ROUNDS / 10] : slowest;
        }
        printf("%s %d %.2f\n", subjects[subject].name, threads, slowest);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    handle_by_index = (by_index)dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    temperature_of = (temperature)dlsym(library, "nvmlDeviceGetTemperature");
    utilization = (one_value)dlsym(library, "nvmlDeviceGetUtilizationRates");
    memory = (one_value)dlsym(library, "nvmlDeviceGetMemoryInfo");
    power = (one_value)dlsym(library, "nvmlDeviceGetPowerUsage");
    unsigned value[2];
    unsigned long long bytes[3];
    if (init() != 0 || handle_by_index(0, &gpu) != 0 || temperature_of(gpu, 0, value) != 0 ||
        utilization(gpu, value) != 0 || memory(gpu, bytes) != 0 || power(gpu, value) != 0) {
        fprintf(stderr, "a getter does not answer\n");
        return 1;
    }
    for (int threads = 1; threads <= THREADS; threads++) {
        measure(threads);
    }
    return 0;
}
