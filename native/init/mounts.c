/* The mounts that give the node its standard places. What is mounted from a fixed lower layer never changes: the links
 * there lead into the node root, and an overlay shows no later change of what lies beneath it. */
#define _GNU_SOURCE
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every kernel has this directory; until the overlays stand, the lower layers are built over it. */
#define SCAFFOLD "/proc/driver"

static void make_directory(const char *path) {
    if (mkdir(path, 0755) < 0)
        refuse(path);
}

static void make_link(const char *directory, const char *name, const char *target) {
    char path[PATH_MAX];
    join_path(path, directory, name);
    if (symlink(target, path) < 0)
        refuse(path);
}

static void overlay(const char *lower, const char *directory) {
    char options[2 * PATH_MAX + 16], submount[PATH_MAX], step[2 * PATH_MAX + 64];
    snprintf(options, sizeof options, "lowerdir=%s:%s", lower, directory);
    if (mount("simnode", directory, "overlay", MS_RDONLY, options) == 0)
        return;
    int why = errno;
    if (first_submount(directory, submount))
        snprintf(step, sizeof step, "mount of overlay on %s, below which %s is mounted", directory, submount);
    else
        snprintf(step, sizeof step, "mount of overlay on %s", directory);
    errno = why;
    refuse(step);
}

/* The library directory shows the driver's libraries and the node root, the program directory nvidia-smi. */
static void mount_overlays(const struct plan *plan, const char *node_root) {
    char path[PATH_MAX];
    struct submounts submounts = {.place = SCAFFOLD "/submounts"};
    mount_or_refuse("simnode", SCAFFOLD, "tmpfs", MS_NOSUID, "mode=0755");
    make_directory(SCAFFOLD "/root");
    mount_or_refuse("simnode", SCAFFOLD "/root", "tmpfs", MS_NOSUID, "mode=0755");
    make_directory(SCAFFOLD "/library");
    make_directory(SCAFFOLD "/library/simnode");
    make_link(SCAFFOLD "/library", "libnvidia-ml.so.1", "simnode/driver/usr/lib64/libnvidia-ml.so.1");
    make_link(SCAFFOLD "/library", "libnvidia-ml.so", "libnvidia-ml.so.1");
    make_link(SCAFFOLD "/library", "libcuda.so.1", "simnode/driver/usr/lib64/libcuda.so.1");
    make_link(SCAFFOLD "/library", "libcuda.so", "libcuda.so.1");
    make_directory(SCAFFOLD "/programs");
    join_path(path, node_root, "driver/usr/bin/nvidia-smi");
    make_link(SCAFFOLD "/programs", "nvidia-smi", path);
    make_directory(submounts.place);
    if (!plan->user_namespace) {
        hold_submounts(&submounts, plan->library, node_root);
        hold_submounts(&submounts, plan->programs, node_root);
    }
    overlay(SCAFFOLD "/library", plan->library);
    overlay(SCAFFOLD "/programs", plan->programs);
    release_submounts(&submounts);
    mount_or_refuse(SCAFFOLD "/root", node_root, NULL, MS_MOVE, NULL);
    if (umount2(SCAFFOLD, MNT_DETACH) < 0)
        refuse("umount of " SCAFFOLD);
}

/* In a chroot "/" is no mount: root leaves it for as long as this takes. */
static void make_private(void) {
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (root < 0 || space < 0 || setns(space, CLONE_NEWNS) < 0)
        refuse("leaving the chroot");
    mount_or_refuse(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (fchdir(root) < 0 || chroot(".") < 0)
        refuse("return to the chroot");
    close(root);
    close(space);
}

void mount_node(const struct plan *plan) {
    char node_root[PATH_MAX];
    join_path(node_root, plan->library, "simnode");
    make_private();
    if (plan->pid_namespace)
        mount_or_refuse("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    mount_overlays(plan, node_root);
    mount_devices(plan, node_root);
    mount_pci_bus(node_root);
    mount_modules(node_root);
}

/* Binds the machine's own entries of /proc/driver below `stage`, those of a driver of NVIDIA's left out. */
static bool bind_proc_entries(const char *stage) {
    DIR *listing = opendir("/proc/driver");
    bool good = listing != NULL;
    for (struct dirent *entry; good && (entry = readdir(listing)) != NULL;) {
        char source[PATH_MAX], target[PATH_MAX];
        struct stat status;
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, "nvidia", strlen("nvidia")) == 0)
            continue;
        join_path(source, "/proc/driver", entry->d_name);
        join_path(target, stage, entry->d_name);
        if (lstat(source, &status) < 0)
            continue;
        if (S_ISDIR(status.st_mode))
            good = mkdir(target, 0755) == 0;
        else
            good = mknod(target, S_IFREG | 0644, 0) == 0;
        good = good && mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0;
    }
    if (listing != NULL)
        closedir(listing);
    return good;
}

/* procfs allows neither mkdir nor an overlay: the driver root's own directory is bound over /proc/driver, so that what
 * comes there later (nvidia-caps, where a GPU is partitioned) shows; read-only, as all of procfs is to the node. */
bool mount_proc_driver(const char *library) {
    char node_root[PATH_MAX], stage[PATH_MAX];
    join_path(node_root, library, "simnode");
    join_path(stage, node_root, "driver/proc/driver");
    return bind_proc_entries(stage) && mount(stage, "/proc/driver", NULL, MS_BIND | MS_REC, NULL) == 0 &&
           mount(NULL, "/proc/driver", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) == 0;
}
