/*
 * step publish|event IMAGE BLOBS: executes one publish (of the second of the two nodes in BLOBS; the first is published
 * before), or one event, instruction by instruction. After each, with the publisher stopped there, a reader must see
 * whole values on its first try and counters that have not fallen. Whenever the image has changed, the publisher is also
 * taken to be killed there: another one must succeed on a copy. Prints "STEPS CHANGES", or one line on what was wrong.
 */
#include "pairs.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BOOT "11111111-2222-3333-4444-555555555555"
#define EVENT_KEY UINT64_C(0x9E3779B97F4A7C15)

uint64_t sn_publish_event(struct sn_image *image, uint32_t device, uint64_t type, uint64_t data, uint32_t gpu_instance,
                          uint32_t compute_instance);

static struct sn_image *image, *copy, *before, *start;
static const char *blob[2];
static uint32_t devices;
static uint64_t floors[COUNTERS];
static int events;
static const char *wrong;

static int image_differs(void)
{
    size_t used = offsetof(struct sn_slot, device) + devices * sizeof(struct sn_device);

    return memcmp(&image->header, &before->header, sizeof(image->header)) != 0 ||
           memcmp(&image->slot[0], &before->slot[0], used) != 0 || memcmp(&image->slot[1], &before->slot[1], used) != 0 ||
           memcmp(image->event, before->event, sizeof(image->event)) != 0;
}

static void copy_image(struct sn_image *to)
{
    size_t used = offsetof(struct sn_slot, device) + devices * sizeof(struct sn_device);

    to->header = image->header;
    memcpy(&to->slot[0], &image->slot[0], used);
    memcpy(&to->slot[1], &image->slot[1], used);
    memcpy(to->event, image->event, sizeof(image->event));
}

/*
 * The active slot stays as it was, but for counters_until. The other one may change only once a reader that had been
 * looking at it, stalled since, would notice.
 */
static void check_slots(void)
{
    uint64_t done = start->header.done;
    const struct sn_slot *active = sn_slot_of(image, done), *was_active = sn_slot_of(start, done);
    const struct sn_slot *target = sn_slot_of(image, done + 1), *was_target = sn_slot_of(start, done + 1);
    size_t used = offsetof(struct sn_slot, device) + devices * sizeof(struct sn_device);
    size_t after = offsetof(struct sn_node, device_count);

    if (memcmp(&active->node.device_count, &was_active->node.device_count, used - after) != 0 ||
        active->node.generation != was_active->node.generation)
        wrong = "the active slot changed";
    if (memcmp(target, was_target, used) != 0 && sn_whole(image, done - 1))
        wrong = "the other slot changed without a word to its readers";
}

static void check_values(const struct sn_image *at)
{
    struct pairs pairs;

    if (read_pairs(at, &pairs) != 1)
        wrong = "a reader had to try again though nobody wrote";
    if (!pairs_agree(&pairs))
        wrong = "torn";
    for (int i = 0; i < COUNTERS; i++) {
        uint64_t value;

        if (read_counter(at, i, &value) != 1)
            wrong = "a reader had to try again though nobody wrote";
        if (value < floors[i])
            wrong = at == image ? "a counter fell" : "a counter fell after the publisher was killed";
        if (at == image)
            floors[i] = value;
    }
}

static void check_events(const struct sn_image *at)
{
    uint64_t total = __atomic_load_n(&at->header.event_total, __ATOMIC_ACQUIRE);

    for (uint64_t sequence = total > SN_MAX_EVENTS ? total - SN_MAX_EVENTS + 1 : 1; sequence <= total; sequence++) {
        const struct sn_event *event = &at->event[sn_event_index(sequence)];

        if (event->sequence == sequence && event->data != sequence * EVENT_KEY)
            wrong = "an event is torn";
    }
}

static void take_over(int which)
{
    uint64_t done = copy->header.done;
    uint64_t total = copy->header.event_total;

    if (sn_publish_open(copy) != 0 || copy->header.event_sequence != (uint32_t)total)
        wrong = "the next publisher does not know the image again";
    if (events) {
        if (sn_publish_event(copy, 0, 1, (total + 1) * EVENT_KEY, 0, 0) != total + 1)
            wrong = "the next publisher's event has another number";
        check_events(copy);
        return;
    }
    if (publish_blob(copy, blob[which], BOOT) != done + 1)
        wrong = "the next publish has another number";
    if (sn_slot_of(copy, done + 1)->node.generation != ((const struct sn_node *)blob[which])->generation)
        wrong = "the next publish is not what was wanted";
    check_values(copy);
}

static void child(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    raise(SIGSTOP);
    if (events)
        sn_publish_event(image, 0, 1, (image->header.event_total + 1) * EVENT_KEY, 0, 0);
    else
        publish_blob(image, blob[1], BOOT);
    _exit(0);
}

int main(int argc, char **argv)
{
    struct stat status;
    unsigned long steps = 0, changes = 0;
    int state;
    pid_t pid;

    if (argc != 4 || stat(argv[3], &status) != 0)
        return 2;
    events = strcmp(argv[1], "event") == 0;
    image = map_file(argv[2], sizeof(*image), 1);
    blob[0] = map_file(argv[3], (size_t)status.st_size, 0);
    blob[1] = blob[0] + status.st_size / 2;
    copy = mmap(NULL, sizeof(*copy), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    before = mmap(NULL, sizeof(*before), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    devices = ((const struct sn_node *)blob[0])->device_count;
    sn_publish_open(image);
    publish_blob(image, blob[1], BOOT);
    publish_blob(image, blob[0], BOOT);
    for (uint64_t i = 1; events && i <= SN_MAX_EVENTS; i++)
        sn_publish_event(image, 0, 1, i * EVENT_KEY, 0, 0);
    usleep(50000);
    copy_image(copy);
    copy_image(before);
    copy_image(start);

    pid = fork();
    if (pid == 0)
        child();
    while (waitpid(pid, &state, 0) == pid && WIFSTOPPED(state) && wrong == NULL) {
        check_slots();
        check_values(image);
        check_events(image);
        if (image_differs()) {
            changes++;
            copy_image(before);
            copy_image(copy);
            take_over((int)(changes % 2));
        }
        steps++;
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0)
            wrong = "no single steps";
    }
    check_values(image);
    if (wrong == NULL && !(WIFEXITED(state) && WEXITSTATUS(state) == 0))
        wrong = "the publisher did not end well, or may not be traced";
    if (wrong != NULL) {
        printf("%s (step %lu, change %lu)\n", wrong, steps, changes);
        kill(pid, SIGKILL);
        return 1;
    }
    printf("%lu %lu\n", steps, changes);
    return 0;
}
