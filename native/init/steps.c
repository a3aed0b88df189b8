/* What every mount is made of. A step that fails ends the node before it stands, and the launcher hears which. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>

void mount_or_refuse(const char *source, const char *target, const char *type, unsigned long flags, const char *data) {
    if (mount(source, target, type, flags, data) < 0) {
        char step[PATH_MAX + 64];
        int why = errno;
        snprintf(step, sizeof step, "mount of %s on %s", type ? type : source ? source : "nothing", target);
        errno = why;
        refuse(step);
    }
}

void join_path(char *path, const char *directory, const char *name) {
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        refuse(name);
    }
}
