/* Without a pid namespace nothing dies by itself with init: what shares the node's mount namespace is killed by name. */
#define _GNU_SOURCE
#include "init.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool mount_namespace(const char *process, char *name, size_t size) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s/ns/mnt", process);
    ssize_t length = readlink(path, name, size - 1);
    if (length < 0)
        return false;
    name[length] = '\0';
    return true;
}

static bool kill_once(pid_t spared, const char *own) {
    bool any = false;
    DIR *listing = opendir("/proc");
    if (listing == NULL)
        return false;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char theirs[64];
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
        if (pid == 0 || pid == getpid() || pid == spared || !mount_namespace(entry->d_name, theirs, sizeof theirs))
            continue;
        if (strcmp(own, theirs) == 0 && kill(pid, SIGKILL) == 0)
            any = true;
    }
    closedir(listing);
    return any;
}

/* Until a pass finds none, for at most ten seconds: a process that forks faster than this is left behind. */
void kill_namespace_mates(pid_t spared) {
    char own[64];
    if (!mount_namespace("self", own, sizeof own))
        return;
    for (int pass = 0; pass < 1000 && kill_once(spared, own); pass++)
        usleep(10000);
}
