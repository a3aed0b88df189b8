/* The mounts. The container's image may hold any link anywhere, so its paths are resolved as if its root were ours. */
#define _GNU_SOURCE
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HARMLESS = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC };

struct place {
    int file;
    char path[32];      /* a path that leads there whatever the names on the way are */
};

static bool find(int root, const char *target, struct place *place)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

    place->file = (int)syscall(SYS_openat2, root, target, &how, sizeof how);
    snprintf(place->path, sizeof place->path, "/proc/self/fd/%d", place->file);
    return place->file >= 0;
}

void bind_over(int root, const char *source, const char *target)
{
    struct place place, mounted;

    if (!find(root, target, &place)) {
        complain("cannot be opened in the container", target, errno);
        return;
    }
    if (mount(source, place.path, NULL, MS_BIND, NULL) < 0)
        complain("cannot be mounted", source, errno);
    else if (!find(root, target, &mounted))
        complain("cannot be opened once mounted", target, errno);
    else {
        if (mount(NULL, mounted.path, NULL, MS_BIND | MS_REMOUNT | HARMLESS, NULL) < 0)
            complain("cannot be made read-only", target, errno);
        close(mounted.file);
    }
    close(place.file);
}

void lay_over(int root, const char *source, const char *target)
{
    char layers[PATH_MAX + 64];
    struct place place;

    if (!find(root, target, &place)) {
        complain("cannot be opened in the container", target, errno);
        return;
    }
    if (snprintf(layers, sizeof layers, "lowerdir=%s:%s", source, place.path) >= (int)sizeof layers)
        complain("is too long a path", source, 0);
    else if (mount("simnode", place.path, "overlay", HARMLESS, layers) < 0)
        complain("cannot be laid over the container's", source, errno);
    close(place.file);
}
