/* The node's /dev: a tmpfs in the driver root that carries the machine's own entries and is shared with /dev, so that
 * what the agent adds or takes away there later shows in both. Nothing is ever written into the machine's /dev. */
#define _GNU_SOURCE
#include "init.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void carry_link(const char *source, const char *target) {
    char leads_to[PATH_MAX];
    ssize_t length = readlink(source, leads_to, sizeof leads_to - 1);
    if (length < 0)
        return;
    leads_to[length] = '\0';
    if (symlink(leads_to, target) < 0)
        refuse(target);
}

/* An entry that vanished, or that this caller may not bind, is left out: a machine's /dev changes at any time. */
static void carry(const char *name, const char *devices) {
    char source[PATH_MAX], target[PATH_MAX];
    struct stat status;
    join_path(source, "/dev", name);
    join_path(target, devices, name);
    if (lstat(source, &status) < 0)
        return;
    if (S_ISLNK(status.st_mode)) {
        carry_link(source, target);
        return;
    }
    bool directory = S_ISDIR(status.st_mode);
    if ((directory ? mkdir(target, 0755) : mknod(target, S_IFREG | 0644, 0)) < 0)
        refuse(target);
    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0)
        directory ? rmdir(target) : unlink(target);
}

void mount_devices(const char *node_root) {
    char driver[PATH_MAX], devices[PATH_MAX];
    join_path(driver, node_root, "driver");
    join_path(devices, driver, "dev");
    if (mkdir(driver, 0755) < 0 || mkdir(devices, 0755) < 0)
        refuse(devices);
    mount_or_refuse("simnode", devices, "tmpfs", MS_NOSUID, "mode=0755");
    mount_or_refuse(NULL, devices, NULL, MS_SHARED, NULL);
    DIR *listing = opendir("/dev");
    if (listing == NULL)
        refuse("/dev");
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        bool relative = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!relative && strncmp(entry->d_name, "nvidia", strlen("nvidia")) != 0)
            carry(entry->d_name, devices);
    }
    closedir(listing);
    mount_or_refuse(devices, "/dev", NULL, MS_BIND | MS_REC, NULL);
}
