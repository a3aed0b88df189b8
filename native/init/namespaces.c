/* The namespaces of the node. The launcher stays outside until the node stands, so that it can still fall back. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void write_map(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        refuse(path);
    close(file);
}

/* One id each, mapped to itself: files of the user keep their owner, everything else reads as nobody's. */
static void map_caller(uid_t uid, gid_t gid) {
    char line[64];
    write_map("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1", uid, uid);
    write_map("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", gid, gid);
    write_map("/proc/self/gid_map", line);
}

/* Dies with the launcher; one that died before the request is seen by its end of the lifeline. */
static void die_with_launcher(void) {
    struct pollfd lifeline = {.fd = LIFELINE};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        refuse("prctl(PR_SET_PDEATHSIG)");
    if (poll(&lifeline, 1, 0) > 0)
        _exit(1);
}

void outlive_launcher(void) {
    prctl(PR_SET_PDEATHSIG, 0);
}

/* Returns in the process that is the node's init. With a pid namespace that is a new child of the *launcher*
 * (CLONE_PARENT), and the process that called ends here, having told its pid. */
void enter_namespaces(const struct plan *plan) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int flags = CLONE_NEWNS | (plan->user_namespace ? CLONE_NEWUSER : 0) | (plan->pid_namespace ? CLONE_NEWPID : 0);
    if (unshare(flags) < 0)
        refuse("unshare");
    if (plan->user_namespace)
        map_caller(uid, gid);
    if (plan->pid_namespace) {
        long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L);
        if (child < 0)
            refuse("clone");
        if (child > 0) {
            char line[32];
            snprintf(line, sizeof line, "init %ld", child);
            report(line);
            _exit(0);
        }
        die_with_launcher();
    } else {
        char line[32];
        snprintf(line, sizeof line, "init %d", getpid());
        report(line);
    }
    setsid();
}

/* An exec by an ordinary uid drops what is not ambient; the agent needs its capabilities for stand-ins. */
void keep_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return;
    for (int word = 0; word < 2; word++)
        data[word].inheritable = data[word].permitted;
    if (syscall(SYS_capset, &header, data) < 0)
        return;
    for (unsigned capability = 0; capability < 64; capability++)
        if (data[capability / 32].permitted & (1u << capability % 32))
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
}
