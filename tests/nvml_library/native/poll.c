/* A monitor in C, in the ways that have broken libraries: argv[1] is the library, argv[2] what to do. Exit 0: all well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLLS 100000
#define FORKS 300

typedef void *handle;

static int (*init)(void);
static int (*shutdown_)(void);
static int (*by_index)(unsigned int, handle *);
static int (*temperature)(handle, unsigned int, unsigned int *);
static int (*utilization)(handle, unsigned int *);
static int (*processes)(handle, unsigned int *, void *);
static volatile int stop;

/* Temperature and utilisation are the same number in the test's image; polls until told to stop, or so many times. */
static void *poll_gpu(void *times)
{
    handle device;
    unsigned int celsius = 0;
    unsigned int rates[2];

    for (long i = 0; !stop && (times == NULL || i < (long)times); i++) {
        if (by_index(0, &device) != 0 || temperature(device, 0, &celsius) != 0 || utilization(device, rates) != 0)
            return "a call failed";
        if (celsius > 100 || rates[0] > 100 || rates[0] != rates[1])
            return "a value is torn";
    }
    return NULL;
}

static void *init_again(void *unused)
{
    (void)unused;
    while (!stop)
        if (init() != 0 || shutdown_() != 0)
            return "init failed";
    return NULL;
}

static int child(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        char *fault = init() != 0 ? "init failed" : poll_gpu((void *)100L);
        _exit(fault != NULL || shutdown_() != 0);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static char *fork_and_poll(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(poll_gpu((void *)(long)POLLS) != NULL);
    waitpid(pid, &status, 0);
    return status == 0 ? NULL : "the child failed";
}

static char *fork_during_init(void)
{
    pthread_t threads[2];
    void *fault = NULL;
    int failed = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, init_again, NULL);
    for (int i = 0; i < FORKS; i++)
        failed += child() != 0;
    stop = 1;
    for (int i = 0; i < 2 && fault == NULL; i++)
        pthread_join(threads[i], &fault);
    return failed != 0 ? "a child failed" : fault;
}

static char *threads_poll(void)
{
    pthread_t threads[2];
    void *fault = NULL;

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, poll_gpu, (void *)(long)POLLS);
    for (int i = 0; i < 2 && fault == NULL; i++)
        pthread_join(threads[i], &fault);
    return fault;
}

static char *poll_in_little_memory(void)
{
    struct rlimit limit = {200000 * 1024, 200000 * 1024};

    setrlimit(RLIMIT_AS, &limit);
    if (shutdown_() != 0 || init() != 0)
        return "init failed";
    return poll_gpu((void *)1000L);
}

static void *list_processes(void *unused)
{
    handle device;
    unsigned int count = 0;

    (void)unused;
    return by_index(0, &device) != 0 || processes(device, &count, NULL) != 0 ? "a call failed"
                                                                             : poll_gpu((void *)1000L);
}

/* A thread with little more stack than the least that there is. */
static char *poll_on_little_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *fault = NULL;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_create(&thread, &attributes, list_processes, NULL);
    pthread_join(thread, &fault);
    return fault;
}

static const struct {
    const char *name;
    char *(*run)(void);
} ways[] = {
    {"fork", fork_and_poll},
    {"fork during init", fork_during_init},
    {"threads", threads_poll},
    {"little memory", poll_in_little_memory},
    {"little stack", poll_on_little_stack},
};

int main(int count, char **arguments)
{
    void *library = count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    char *fault = "no such way";

    if (library == NULL)
        return 2;
    init = (int (*)(void))dlsym(library, "nvmlInit_v2");
    shutdown_ = (int (*)(void))dlsym(library, "nvmlShutdown");
    by_index = (int (*)(unsigned int, handle *))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    temperature = (int (*)(handle, unsigned int, unsigned int *))dlsym(library, "nvmlDeviceGetTemperature");
    utilization = (int (*)(handle, unsigned int *))dlsym(library, "nvmlDeviceGetUtilizationRates");
    processes = (int (*)(handle, unsigned int *, void *))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (init() != 0)
        return 3;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, arguments[2]) == 0)
            fault = ways[i].run();
    if (fault != NULL)
        fprintf(stderr, "%s\n", fault);
    return fault != NULL;
}
