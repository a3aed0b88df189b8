/* The node's PCI bus, in the places where the kernel shows the machine's: /sys/devices, /sys/bus/pci, /proc/bus/pci.
 *
 * The agent stages the bus below the node root, and what it stages there shows at once, for these are plain binds. Of
 * the machine, all but its PCI functions stays: its devices that are no PCI functions, and below a function what its
 * driver made (virtio0, net, nvme), so that links of /sys/class and /sys/block still lead somewhere. Where a step is
 * refused the node stands without its bus, and one line says so. */
#define _GNU_SOURCE
#include "init.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Machines with thousands of virtual functions would make every node wait. */
enum { MOST_CARRIED = 1024 };

static const char *const places[][2] = {
    {"sys/devices", "/sys/devices"},
    {"sys/bus/pci", "/sys/bus/pci"},
    {"proc/bus/pci", "/proc/bus/pci"},
};
enum { PLACES = sizeof places / sizeof places[0], NEEDED = 2 };

/* DDDD:BB:DD.F */
static bool is_function(const char *name) {
    unsigned domain, bus, device, function;
    int length = 0;
    return sscanf(name, "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &length) == 4 && name[length] == '\0';
}

static bool is_root(const char *name) {
    return strncmp(name, "pci", 3) == 0 && isxdigit((unsigned char)name[3]);
}

/* What the PCI core itself keeps in a function's directory, or in a root's. */
static bool is_of_pci(const char *name) {
    static const char *const own[] = {"power", "link", "msi_irqs", "pci_bus"};
    for (size_t at = 0; at < sizeof own / sizeof own[0]; at++)
        if (strcmp(name, own[at]) == 0)
            return true;
    return strstr(name, ":pcie") != NULL;
}

static bool is_directory(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Recurses through bridges only; a function below which nothing is left has no directory. */
static void carry_functions(const char *source, const char *target, int *left) {
    DIR *listing = opendir(source);
    if (listing == NULL)
        return;
    mkdir(target, 0755);
    for (struct dirent *entry; *left > 0 && (entry = readdir(listing)) != NULL;) {
        char from[PATH_MAX], to[PATH_MAX];
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR || is_of_pci(entry->d_name))
            continue;
        join_path(from, source, entry->d_name);
        join_path(to, target, entry->d_name);
        if (is_function(entry->d_name))
            carry_functions(from, to, left);
        else if (mkdir(to, 0755) == 0) {
            --*left;
            if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
                rmdir(to);
        }
    }
    closedir(listing);
    rmdir(target);
}

static bool carry_devices(const char *target) {
    int left = MOST_CARRIED;
    DIR *listing = opendir("/sys/devices");
    bool good = listing != NULL;
    for (struct dirent *entry; good && (entry = readdir(listing)) != NULL;) {
        char from[PATH_MAX], to[PATH_MAX];
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        join_path(from, "/sys/devices", entry->d_name);
        join_path(to, target, entry->d_name);
        if (is_root(entry->d_name))
            carry_functions(from, to, &left);
        else
            good = mkdir(to, 0755) == 0 && mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
    }
    if (listing != NULL)
        closedir(listing);
    return good;
}

/* Programs see it read-only, as they see the rest of /sys; the agent writes through the node root. */
static bool show(const char *staged, const char *place) {
    if (mount(staged, place, NULL, MS_BIND | MS_REC, NULL) < 0)
        return false;
    mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    return true;
}

static void give_up(const char *place, int shown) {
    char line[PATH_MAX];
    snprintf(line, sizeof line, "lost %s: %s", place, strerror(errno));
    while (shown-- > 0)
        umount2(places[shown][1], MNT_DETACH);
    report(line);
}

static void make_all(char *path) {
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
    mkdir(path, 0755);
}

/* Both places of /sys or none: links lead from one into the other. */
void mount_pci_bus(const char *node_root) {
    char staged[PLACES][PATH_MAX];
    for (int at = 0; at < PLACES; at++) {
        join_path(staged[at], node_root, places[at][0]);
        make_all(staged[at]);
        if (at < NEEDED && !is_directory(places[at][1])) {
            errno = ENOENT;
            give_up(places[at][1], 0);
            return;
        }
    }
    if (!carry_devices(staged[0])) {
        give_up(places[0][1], 0);
        return;
    }
    for (int at = 0; at < PLACES; at++)
        if ((at < NEEDED || is_directory(places[at][1])) && !show(staged[at], places[at][1])) {
            give_up(places[at][1], at);
            return;
        }
}
