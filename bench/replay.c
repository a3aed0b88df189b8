/* An NVML library that takes no time: it answers a program's calls, in their order, from a recording of a run of the same
   program with the real library. What the program takes with it is the program's own. Not a simulator: nothing but
   `make bench` uses it.

   REPLAY is the recording. REPLAY_OF names the real library and turns recording on: each call goes through with copies of
   what its arguments point at, and the bytes that it wrote are kept. Which arguments a function has need not be known:
   every argument of NVML is an integer or a pointer, and behind one that a function does not have it does not write.
   A call out of turn ends the program: then nothing was measured.

   The other half is generated (replay.py): names, entries, and the slots of the private table; all end in replay_call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS = 6, SLOTS = 256, UNIT = 8 };

typedef uintptr_t word;
typedef word call_fn(word, word, word, word, word, word);

extern const char *const replay_names[];
extern const uint32_t replay_named;
extern call_fn *const replay_slots[SLOTS];
word replay_call(uint32_t name, const word given[ARGUMENTS]);
int nvmlInternalGetExportTable(const void **out, const void *guid);

/* A recording: calls, each followed by its changes and their bytes, in units; a change of no bytes is the last. */
struct call {
    uint32_t name;
    uint32_t answer;
};
struct change {
    uint16_t argument;
    uint16_t offset;
    uint32_t length;
};

static const unsigned char *next, *end;

__attribute__((noreturn)) static void fail(const char *words)
{
    fprintf(stderr, "replay: %s\n", words);
    abort();
}

/* Makes the next change of a call; false after the last. */
static bool apply(const word *given)
{
    const struct change *change = (const void *)next;

    next += sizeof(*change);
    if (change->length == 0)
        return false;
    memcpy((char *)given[change->argument] + change->offset, next, change->length);
    next += (change->length + UNIT - 1) / UNIT * UNIT;
    return true;
}

static word replay(uint32_t name, const word *given)
{
    const struct call *call = (const void *)next;

    if (next == end || call->name != name)
        fail("a call that was not recorded");
    next += sizeof(*call);
    while (apply(given))
        continue;
    return call->answer;
}

static void begin_replaying(const char *file)
{
    struct stat status;
    int opened = open(file, O_RDONLY | O_CLOEXEC);

    if (opened < 0 || fstat(opened, &status) != 0)
        fail("no recording");
    next = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, opened, 0);
    end = next + status.st_size;
    close(opened);
}

/* What recording needs. COPIED bytes behind each argument are copied to where there is room for whatever a function could
   write; of the first PROBED it is found out whether they are written even as they were, some AT_ONCE. */
enum { COPIED = 8192, PROBED = 1024, AT_ONCE = 4, ROOM = 4 << 20 };

static int recording, memory;
static void *real;
static call_fn *const *real_slots;
static unsigned char *copies[ARGUMENTS];
static unsigned char before[ARGUMENTS][COPIED], after[ARGUMENTS][COPIED];
static bool written[ARGUMENTS][COPIED];
static size_t sizes[ARGUMENTS];
static unsigned char kept[ARGUMENTS * COPIED * (UNIT + sizeof(struct change))];
static size_t kept_size;

static void begin_recording(const char *file, const char *library)
{
    recording = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (recording < 0 || memory < 0)
        fail("nothing can be recorded");
    for (int i = 0; i < ARGUMENTS; i++)
        copies[i] = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    real = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (real == NULL)
        fail(dlerror());
}

static call_fn *real_function(uint32_t name)
{
    void *found = name < replay_named ? dlsym(real, replay_names[name]) : (void *)real_slots[name - replay_named];

    if (found == NULL)
        fail("the real library lacks a function");
    return (call_fn *)found;
}

/* How much of what is behind an argument can be looked at. Handles, which point into a library, are left alone. */
static size_t look(word argument, unsigned char *out)
{
    Dl_info object;
    ssize_t size;

    if (dladdr((void *)argument, &object) != 0 && strstr(object.dli_fname, ".so") != NULL)
        return 0;
    size = pread(memory, out, COPIED, (off_t)argument);
    return size < 0 ? 0 : (size_t)size;
}

static uint32_t call_with_copies(call_fn *function, const word *given)
{
    word arguments[ARGUMENTS];

    for (int i = 0; i < ARGUMENTS; i++)
        arguments[i] = sizes[i] != 0 ? (word)copies[i] : given[i];
    return (uint32_t)function(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

/* Calls again with other bytes at one place: what then stands there as after the first call was written. */
static void probe(call_fn *function, const word *given, int argument, size_t at)
{
    for (int i = 0; i < ARGUMENTS; i++)
        memcpy(copies[i], before[i], sizes[i] < PROBED ? sizes[i] : PROBED);
    for (size_t byte = at; byte < at + AT_ONCE; byte++)
        copies[argument][byte] ^= 0xff;
    call_with_copies(function, given);
    for (size_t byte = at; byte < at + AT_ONCE; byte++)
        written[argument][byte] |= copies[argument][byte] == after[argument][byte];
}

static void keep(const void *bytes, size_t size)
{
    memcpy(&kept[kept_size], bytes, size);
    kept_size += (size + UNIT - 1) / UNIT * UNIT;
}

static void keep_changes(uint16_t argument)
{
    for (size_t to, from = 0; from < sizes[argument]; from = to + 1) {
        struct change change = {argument, (uint16_t)from, 0};
        for (to = from; to < sizes[argument] && written[argument][to];)
            to++;
        change.length = (uint32_t)(to - from);
        if (change.length == 0)
            continue;
        keep(&change, sizeof(change));
        keep(&after[argument][from], change.length);
    }
}

/* Lets the real library answer; its answer is then the one call that can be replayed. */
static void record(uint32_t name, const word *given)
{
    call_fn *function = real_function(name);
    bool getter = name >= replay_named || strstr(replay_names[name], "Get") != NULL;
    struct call call = {.name = name};

    memset(written, 0, sizeof(written));
    for (int i = 0; i < ARGUMENTS; i++) {
        sizes[i] = look(given[i], before[i]);
        memcpy(copies[i], before[i], sizes[i]);
    }
    call.answer = call_with_copies(function, given);
    for (int i = 0; i < ARGUMENTS; i++) {
        memcpy(after[i], copies[i], sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            written[i][at] = after[i][at] != before[i][at];
    }
    kept_size = 0;
    keep(&call, sizeof(call));
    for (uint16_t i = 0; i < ARGUMENTS; i++) {
        for (size_t at = 0; getter && call.answer == 0 && at + AT_ONCE <= sizes[i] && at < PROBED; at += AT_ONCE)
            probe(function, given, i, at);
        keep_changes(i);
    }
    keep(&(struct change){0}, sizeof(struct change));
    if (write(recording, kept, kept_size) != (ssize_t)kept_size)
        fail("the recording cannot be written");
    next = kept;
    end = kept + kept_size;
}

__attribute__((constructor)) static void begin(void)
{
    const char *file = getenv("REPLAY"), *library = getenv("REPLAY_OF");

    if (file == NULL)
        fail("REPLAY is not set");
    if (library != NULL)
        begin_recording(file, library);
    else
        begin_replaying(file);
}

word replay_call(uint32_t name, const word given[ARGUMENTS])
{
    if (real != NULL)
        record(name, given);
    return replay(name, given);
}

/* The table that is handed out is always ours. */
int nvmlInternalGetExportTable(const void **out, const void *guid)
{
    static const void *table[SLOTS];

    if (real != NULL) {
        int (*get)(call_fn *const **, const void *) =
            (int (*)(call_fn *const **, const void *))dlsym(real, "nvmlInternalGetExportTable");
        if (get(&real_slots, guid) != 0)
            fail("no private table");
    }
    table[0] = (const void *)sizeof(table);
    memcpy(&table[1], &replay_slots[1], sizeof(table) - sizeof(table[0]));
    *out = table;
    return 0;
}
