/*
 * watch pairs|counters IMAGE FLOORS MILLISECONDS THREADS: reads without pause in threads that may make no system call
 * (seccomp's strict mode) and says what they saw: "READS TRIES", or one line that says what was wrong.
 *
 * FLOORS is shared by all watching processes: the highest value that any read of a counter had returned. A read that
 * starts later must not return less.
 */
#include "pairs.h"

#include <inttypes.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define THREADS_MAX 8
#define GRACE_MS 5000

static const struct sn_image *image;
static _Atomic uint64_t *floors;
static uint64_t deadline;

struct watcher {
    uint64_t reads;
    int tries;
    char wrong[200];
    atomic_int done;
};

static void (*look)(struct watcher *);

static void note(struct watcher *watcher, int tries)
{
    watcher->reads++;
    if (tries > watcher->tries)
        watcher->tries = tries;
}

static void look_at_pairs(struct watcher *watcher)
{
    struct pairs pairs;

    note(watcher, read_pairs(image, &pairs));
    if (!pairs_agree(&pairs))
        snprintf(watcher->wrong, sizeof(watcher->wrong), "torn: x %" PRIu64 " word %u,%u wide %" PRIu64 ",%u refused %u,%u",
                 pairs.x, pairs.word.value, pairs.word.status, pairs.wide.value, pairs.wide.status, pairs.refused.value,
                 pairs.refused.status);
}

static void look_at_counters(struct watcher *watcher)
{
    int which = (int)(watcher->reads % COUNTERS);
    uint64_t floor = atomic_load(&floors[which]);
    uint64_t value;

    note(watcher, read_counter(image, which, &value));
    if (value < floor)
        snprintf(watcher->wrong, sizeof(watcher->wrong), "counter %d fell from %" PRIu64 " to %" PRIu64, which, floor, value);
    while (value > floor && !atomic_compare_exchange_weak(&floors[which], &floor, value))
        ;
}

static void *watch(void *argument)
{
    struct watcher *watcher = argument;

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        snprintf(watcher->wrong, sizeof(watcher->wrong), "no seccomp");
    while (watcher->wrong[0] == '\0' && sn_clock() < deadline)
        look(watcher);
    atomic_store(&watcher->done, 1);
    syscall(SYS_exit, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct watcher watchers[THREADS_MAX];
    int threads = argc == 6 ? atoi(argv[5]) : 0;
    uint64_t reads = 0;
    int tries = 0;

    if (threads < 1 || threads > THREADS_MAX)
        return 2;
    look = strcmp(argv[1], "pairs") == 0 ? look_at_pairs : look_at_counters;
    image = map_file(argv[2], sizeof(*image), 0);
    floors = map_file(argv[3], COUNTERS * sizeof(*floors), 1);
    deadline = sn_clock() + strtoull(argv[4], NULL, 10) * 1000000;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, watch, &watchers[i]);
    }
    for (int i = 0; i < threads; i++) {
        while (!atomic_load(&watchers[i].done) && sn_clock() < deadline + GRACE_MS * UINT64_C(1000000))
            usleep(1000);
        if (!atomic_load(&watchers[i].done))
            snprintf(watchers[i].wrong, sizeof(watchers[i].wrong), "a reader made a system call, or hung");
        if (watchers[i].wrong[0] != '\0') {
            puts(watchers[i].wrong);
            fflush(stdout);
            _exit(1);
        }
        reads += watchers[i].reads;
        tries = watchers[i].tries > tries ? watchers[i].tries : tries;
    }
    printf("%" PRIu64 " %d\n", reads, tries);
    fflush(stdout);
    _exit(0);
}
