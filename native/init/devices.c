/* The node's /dev: a tmpfs in the driver root that carries the machine's own entries and is shared with /dev, so that
 * what the agent adds or takes away there later shows in both. Nothing is ever written into the machine's /dev.
 *
 * Root gets nodes of its own, so that a chmod in the node is not one on the machine. What cannot be made twice stays
 * the machine's: mount points (pts, shm, mqueue), sockets, files; and every entry for an ordinary user. */
#define _GNU_SOURCE
#include "init.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000 /* linux/stat.h since 5.8 */
#endif

static void carry_all(const char *source, const char *target, bool own);

static void carry_link(const char *source, const char *target) {
    char leads_to[PATH_MAX];
    ssize_t length = readlink(source, leads_to, sizeof leads_to - 1);
    if (length < 0)
        return;
    leads_to[length] = '\0';
    if (symlink(leads_to, target) < 0)
        refuse(target);
}

/* Kernels before 5.8 do not say; there another file system is taken for a mount, which all that matter are. */
static bool is_mount_point(const struct statx *entry, const struct statx *above) {
    if (entry->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return entry->stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return entry->stx_dev_major != above->stx_dev_major || entry->stx_dev_minor != above->stx_dev_minor;
}

static bool settle(const char *target, const struct statx *entry) {
    return chown(target, entry->stx_uid, entry->stx_gid) == 0 && chmod(target, entry->stx_mode & 07777) == 0;
}

/* A copy of a device or a directory; false where there can be none, and nothing is left then. */
static bool copied(const char *source, const char *target, const struct statx *entry) {
    mode_t kind = entry->stx_mode & S_IFMT;
    if (kind == S_IFDIR) {
        if (mkdir(target, 0755) < 0)
            return false;
        carry_all(source, target, true);
        return settle(target, entry);
    }
    if (kind != S_IFCHR && kind != S_IFBLK)
        return false;
    if (mknod(target, kind | 0600, makedev(entry->stx_rdev_major, entry->stx_rdev_minor)) < 0)
        return false;
    if (settle(target, entry))
        return true;
    unlink(target);
    return false;
}

/* What this caller may not bind is left out. */
static void carry_bound(const char *source, const char *target, bool directory) {
    if ((directory ? mkdir(target, 0755) : mknod(target, S_IFREG | 0644, 0)) < 0)
        refuse(target);
    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0)
        directory ? rmdir(target) : unlink(target);
}

/* An entry that the node has already stays, one that vanished is left out: a machine's /dev changes at any time. */
static void carry(const char *source, const char *target, const struct statx *above, bool own) {
    struct statx entry;
    if (faccessat(AT_FDCWD, target, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    if (statx(AT_FDCWD, source, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &entry) < 0)
        return;
    if (S_ISLNK(entry.stx_mode))
        carry_link(source, target);
    else if (!own || is_mount_point(&entry, above) || !copied(source, target, &entry))
        carry_bound(source, target, S_ISDIR(entry.stx_mode));
}

static void carry_all(const char *source, const char *target, bool own) {
    struct statx above;
    DIR *listing = opendir(source);
    if (listing == NULL || statx(dirfd(listing), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &above) < 0)
        refuse(source);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char from[PATH_MAX], to[PATH_MAX];
        bool relative = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (relative || strncmp(entry->d_name, "nvidia", strlen("nvidia")) == 0)
            continue;
        join_path(from, source, entry->d_name);
        join_path(to, target, entry->d_name);
        carry(from, to, &above, own);
    }
    closedir(listing);
}

/* A bind of the terminal multiplexer alone does not find the terminals that lie beside it (path_pts in the kernel): an
 * ordinary user's is reached through the whole of the machine's /dev. */
static void lead_to_terminals(const char *node_root, const char *devices) {
    char machine[PATH_MAX], leads_to[PATH_MAX], target[PATH_MAX];
    struct stat status;
    if (lstat("/dev/ptmx", &status) < 0 || !S_ISCHR(status.st_mode))
        return;
    join_path(machine, node_root, "machine-dev");
    join_path(leads_to, machine, "ptmx");
    join_path(target, devices, "ptmx");
    if (mkdir(machine, 0755) < 0)
        refuse(machine);
    mount_or_refuse("/dev", machine, NULL, MS_BIND | MS_REC, NULL);
    if (symlink(leads_to, target) < 0)
        refuse(target);
}

void mount_devices(const struct plan *plan, const char *node_root) {
    char driver[PATH_MAX], devices[PATH_MAX];
    join_path(driver, node_root, "driver");
    join_path(devices, driver, "dev");
    if (mkdir(driver, 0755) < 0 || mkdir(devices, 0755) < 0)
        refuse(devices);
    mount_or_refuse("simnode", devices, "tmpfs", MS_NOSUID, "mode=0755");
    mount_or_refuse(NULL, devices, NULL, MS_SHARED, NULL);
    if (plan->user_namespace)
        lead_to_terminals(node_root, devices);
    carry_all("/dev", devices, !plan->user_namespace);
    mount_or_refuse(devices, "/dev", NULL, MS_BIND | MS_REC, NULL);
}
