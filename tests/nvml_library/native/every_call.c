/* Calls every function that takes a device in many wrong and some right ways, for the sanitizers to watch. It is linked
 * with the library's own files. every.h has X(name, "kinds") once for each: the kinds of its parameters after the
 * device, n for numbers, d for devices, p for pointers. Nothing lies behind the one buffer that the pointers point to.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 16384
#define PARAMETERS 6

typedef int any(void *, ...);

#define X(name, kinds) any name;
#include "every.h"
#undef X

static const struct {
    any *function;
    const char *kinds;
} every[] = {
#define X(name, kinds) {name, kinds},
#include "every.h"
#undef X
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);

static void call(size_t which, void *device, uintptr_t number, void *page)
{
    uintptr_t values[PARAMETERS] = {0};

    for (size_t i = 0; every[which].kinds[i] != '\0'; i++) {
        char kind = every[which].kinds[i];
        values[i] = kind == 'n' ? number : (uintptr_t)(kind == 'd' ? device : page);
    }
    every[which].function(device, values[0], values[1], values[2], values[3], values[4], values[5]);
}

static void call_all(void *device, void *page)
{
    static const unsigned int tags[] = {0,          0x0100000c, 0x01000008, 0x01000010, 0x01000018,
                                        0x01000034, 0x01000040, 0x01000054, 0x01000068, 0x0100002c,
                                        0x0200002c, 0x02000028, 0x02000024, 0x03000028};

    for (size_t f = 0; f < sizeof(every) / sizeof(every[0]); f++) {
        for (size_t tag = 0; tag < sizeof(tags) / sizeof(tags[0]); tag++) {
            for (uintptr_t number = 0; number < 4; number++) {
                call(f, device, number, NULL);
                memset(page, 0, PAGE);
                memcpy(page, &tags[tag], sizeof(tags[tag]));
                call(f, device, number, page);
            }
        }
    }
}

int main(void)
{
    void *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned int count = 0;
    void *device;

    if (page == MAP_FAILED || mprotect((char *)page + PAGE, PAGE, PROT_NONE) != 0)
        return 2;
    call_all(page, page);
    if (nvmlInit_v2() != 0 || nvmlDeviceGetCount_v2(&count) != 0)
        return 1;
    call_all(NULL, page);
    call_all((char *)page + 1, page);
    for (unsigned int i = 0; i < count; i++)
        if (nvmlDeviceGetHandleByIndex_v2(i, &device) == 0)
            call_all(device, page);
    nvmlShutdown();
    puts("done");
    return 0;
}
