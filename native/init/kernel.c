/* The modules that the node's kernel has: /sys/module with the machine's and the driver's, /proc/modules, /proc/devices.
 *
 * Where a step is refused the node stands without it, and one line says so. */
#define _GNU_SOURCE
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES "/sys/module"

static void lose(const char *place) {
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "lost %s: %s", place, strerror(errno));
    report(line);
}

/* Programs see it read-only; the agent writes through the node root. */
static bool show(const char *staged, const char *place) {
    return mount(staged, place, NULL, MS_BIND | MS_REC, NULL) == 0 &&
           mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* All but a driver of NVIDIA's, whose place the simulated one takes. A module that goes meanwhile is left out. */
static bool carry_modules(const char *target) {
    DIR *listing = opendir(MODULES);
    if (listing == NULL)
        return false;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char from[PATH_MAX], to[PATH_MAX];
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, "nvidia", strlen("nvidia")) == 0)
            continue;
        join_path(from, MODULES, entry->d_name);
        join_path(to, target, entry->d_name);
        if (mkdir(to, 0755) == 0 && mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
            rmdir(to);
    }
    closedir(listing);
    return true;
}

/* The agent stages the driver's modules beside those of the machine, and they show at once. */
void mount_modules(const char *node_root) {
    char staged[PATH_MAX];
    join_path(staged, node_root, "sys");
    mkdir(staged, 0755);
    join_path(staged, node_root, "sys/module");
    if (mkdir(staged, 0755) < 0 || !carry_modules(staged) || !show(staged, MODULES))
        lose(MODULES);
}

/* The node's file and its place are one inode, which the agent writes to. */
static void show_file(const char *node_root, const char *name) {
    char staged[PATH_MAX], place[PATH_MAX];
    join_path(staged, node_root, name);
    join_path(place, "", name);
    if (access(place, F_OK) == 0 && !show(staged, place)) /* a kernel without modules has no list of them */
        lose(place);
}

void mount_proc_files(const char *library) {
    char node_root[PATH_MAX];
    join_path(node_root, library, "simnode");
    show_file(node_root, "proc/devices");
    show_file(node_root, "proc/modules");
}
