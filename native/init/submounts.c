/* What is mounted below a directory over which the node lays an overlay. An overlay shows none of it, so each is bound
 * elsewhere before, and moved back onto the same place after. An ordinary user cannot even lay the overlay: in a user
 * namespace the kernel lets nobody look beneath a mount of others. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static bool is_below(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Mountinfo writes space, tab, line feed and backslash as three octal digits (proc(5)). */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        unsigned code;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* The next mount point below `directory`, "" at the end. Fields: id, parent, device, root, mount point. */
static void next_below(FILE *mounts, const char *directory, char *path) {
    char *line = NULL;
    size_t size = 0;
    path[0] = '\0';
    while (path[0] == '\0' && getline(&line, &size, mounts) > 0)
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1) {
            unescape(path);
            if (!is_below(path, directory))
                path[0] = '\0';
        }
    free(line);
}

static FILE *open_mounts(void) {
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (mounts == NULL)
        refuse("/proc/self/mountinfo");
    return mounts;
}

/* False if there is none; `path` then holds the directory itself. */
bool first_submount(const char *directory, char *path) {
    FILE *mounts = open_mounts();
    next_below(mounts, directory, path);
    fclose(mounts);
    bool found = path[0] != '\0';
    if (!found)
        snprintf(path, PATH_MAX, "%s", directory);
    return found;
}

static bool is_held(const struct submounts *submounts, const char *path) {
    for (int at = 0; at < submounts->count; at++)
        if (strcmp(path, submounts->path[at]) == 0 || is_below(path, submounts->path[at]))
            return true;
    return false;
}

static void hold_one(struct submounts *submounts, const char *path) {
    char place[PATH_MAX];
    struct stat status;
    if (lstat(path, &status) < 0) /* another mount hides it */
        return;
    if (submounts->count == MAX_SUBMOUNTS) {
        errno = E2BIG;
        refuse(path);
    }
    snprintf(place, sizeof place, "%s/%d", submounts->place, submounts->count);
    if ((S_ISDIR(status.st_mode) ? mkdir(place, 0755) : mknod(place, S_IFREG | 0644, 0)) < 0)
        refuse(place);
    mount_or_refuse(path, place, NULL, MS_BIND | MS_REC, NULL);
    submounts->path[submounts->count] = strdup(path);
    if (submounts->path[submounts->count++] == NULL)
        refuse(path);
}

/* Binds them in `submounts->place`, a directory; what is at or below `but` is left out. */
void hold_submounts(struct submounts *submounts, const char *directory, const char *but) {
    char path[PATH_MAX];
    FILE *mounts = open_mounts();
    for (next_below(mounts, directory, path); path[0] != '\0'; next_below(mounts, directory, path))
        if (strcmp(path, but) != 0 && !is_below(path, but) && !is_held(submounts, path))
            hold_one(submounts, path);
    fclose(mounts);
}

void release_submounts(struct submounts *submounts) {
    for (int at = 0; at < submounts->count; at++) {
        char place[PATH_MAX];
        snprintf(place, sizeof place, "%s/%d", submounts->place, at);
        mount_or_refuse(place, submounts->path[at], NULL, MS_MOVE, NULL);
        free(submounts->path[at]);
    }
    submounts->count = 0;
}
