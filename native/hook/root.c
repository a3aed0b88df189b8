/* Where the container's root is: the runtime's state names the bundle, and the bundle's configuration the root. */
#define _GNU_SOURCE
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 65536, LARGEST = 64 << 20 };

/* All that can be read, with a NUL after it; NULL if it is too much. The caller frees it. */
static char *read_all(int file)
{
    size_t used = 0;
    char *text = NULL;

    for (;;) {
        char *grown = used > LARGEST ? NULL : realloc(text, used + CHUNK + 1);
        ssize_t got;

        if (grown == NULL)
            break;
        text = grown;
        do
            got = read(file, text + used, CHUNK);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            break;
        if (got == 0) {
            text[used] = '\0';
            return text;
        }
        used += (size_t)got;
    }
    free(text);
    return NULL;
}

static bool file_text(int file, const char *first, const char *second, char *out, unsigned int size)
{
    char *text = read_all(file);
    bool found = text != NULL && json_text(text, first, second, out, size);

    free(text);
    return found;
}

int open_root(void)
{
    char bundle[PATH_MAX], root[PATH_MAX];
    int directory, configuration, opened;
    bool found;

    if (!file_text(STDIN_FILENO, "bundle", NULL, bundle, sizeof bundle)) {
        complain("names no bundle", "the state on standard input", 0);
        return -1;
    }
    directory = open(bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
    configuration = openat(directory, "config.json", O_RDONLY | O_CLOEXEC);
    if (configuration < 0) {
        complain("config.json cannot be opened", bundle, errno);
        return -1;
    }
    found = file_text(configuration, "root", "path", root, sizeof root);
    close(configuration);
    if (!found) {
        complain("config.json names no root", bundle, 0);
        return -1;
    }
    opened = openat(directory, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        complain("cannot be opened", root, errno);
    close(directory);
    return opened;
}
