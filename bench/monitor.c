/* The smallest NVML program. "monitor": loads nothing and ends. "monitor init": dlopen, init, shutdown. "monitor footprint":
   the same without shutdown, then prints what it cost: "RSS_KIB THREADS HANDLERS", beside the process before. Before is
   after a first library, one of the C library's own that is all but empty: what the loader itself touches the first time
   it loads anything is not our library's. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r"), *memory = fopen("/proc/self/smaps_rollup", "r");
    long rss = 0, threads = 0;
    int handlers = 0;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "Threads: %ld", &threads);
    }
    while (memory != NULL && fgets(line, sizeof line, memory) != NULL) { /* VmRSS of status is off by up to 64 pages */
        sscanf(line, "Rss: %ld", &rss);
    }
    if (status == NULL || memory == NULL) {
        perror("/proc/self");
        exit(1);
    }
    fclose(status);
    fclose(memory);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        handlers += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
    printf("%ld %ld %d\n", rss, threads, handlers);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        return 0;
    }
    int footprint = strcmp(arguments[1], "footprint") == 0;
    if (footprint) {
        void *first = dlopen("libdl.so.2", RTLD_LAZY);
        if (first == NULL || dlsym(first, "dlopen") == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        show();
    }
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*shutdown)(void) = (int (*)(void))dlsym(library, "nvmlShutdown");
    if (init() != 0) {
        return 1;
    }
    if (footprint) {
        show();
        return 0;
    }
    return shutdown();
}
