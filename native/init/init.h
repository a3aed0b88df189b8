/* The local node's init: pid 1 of the node's pid namespace. It mounts, starts the agent, reaps, and converges nothing.
 *
 * Descriptors it is started with: REPORT takes one line per event to the launcher ("init PID", "staged", "failed WHY",
 * "refused STEP: ERROR", "lost PLACE: ERROR" of what the node stands without), STATE holds what the agent needs,
 * LIFELINE hangs up when the launcher is gone. A byte through LIFELINE lets a staged node outlive its launcher: init
 * reports "staying". HELD, if it is open, is a file that is locked as long as init lives. The agent gets REPORT (a pipe
 * of init's own) and STATE under the same numbers.
 */
#ifndef SIMNODE_INIT_H
#define SIMNODE_INIT_H

#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

enum { REPORT = 3, STATE = 4, LIFELINE = 5, HELD = 6 };

struct plan {
    const char *library;  /* the directory of the machine's libc.so.6, resolved */
    const char *programs; /* /usr/bin, resolved */
    bool user_namespace;
    bool pid_namespace;
    char **agent; /* the agent's command line */
};

/* report.c */
void report(const char *line);
noreturn void refuse(const char *step);

/* namespaces.c */
void enter_namespaces(const struct plan *plan);
void outlive_launcher(void);
void keep_capabilities(void);

/* steps.c */
void mount_or_refuse(const char *source, const char *target, const char *type, unsigned long flags, const char *data);
void join_path(char *path, const char *directory, const char *name);

/* submounts.c */
enum { MAX_SUBMOUNTS = 256 };
struct submounts {
    const char *place; /* the directory that holds them until they are released */
    int count;
    char *path[MAX_SUBMOUNTS]; /* where each belongs */
};
bool first_submount(const char *directory, char *path); /* PATH_MAX bytes */
void hold_submounts(struct submounts *submounts, const char *directory, const char *but);
void release_submounts(struct submounts *submounts);

/* devices.c */
void mount_devices(const struct plan *plan, const char *node_root);

/* sysfs.c */
void mount_pci_bus(const char *node_root);

/* kernel.c */
void mount_modules(const char *node_root);
void mount_proc_files(const char *library);

/* mounts.c */
void mount_node(const struct plan *plan);
bool mount_proc_driver(const char *library);

/* agent.c */
struct agent {
    pid_t pid;         /* 0: none runs */
    int reports[2];    /* the agent's REPORT, both ends */
    bool staged;       /* it has reported so once */
    int backoff_ms;    /* how long the next restart waits */
    long long started; /* CLOCK_MONOTONIC, ms */
    long long due;     /* when to start it again, ms; 0: not waiting */
};
void agent_prepare(struct agent *agent);
void agent_start(struct agent *agent, const struct plan *plan);
void agent_listen(struct agent *agent, const struct plan *plan);
void agent_ended(struct agent *agent, const struct plan *plan, int status);
int agent_timeout(const struct agent *agent);

/* sweep.c */
void kill_namespace_mates(pid_t spared);

#endif
