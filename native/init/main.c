/* init [--user] [--no-pid] LIBRARY_DIRECTORY PROGRAM_DIRECTORY AGENT [ARGUMENT…] */
#define _GNU_SOURCE
#include "init.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool read_plan(struct plan *plan, int count, char **words) {
    int at = 1;
    *plan = (struct plan){.pid_namespace = true};
    for (; at < count && strncmp(words[at], "--", 2) == 0; at++) {
        if (strcmp(words[at], "--user") == 0)
            plan->user_namespace = true;
        else if (strcmp(words[at], "--no-pid") == 0)
            plan->pid_namespace = false;
        else
            return false;
    }
    if (count - at < 3)
        return false;
    plan->library = words[at];
    plan->programs = words[at + 1];
    plan->agent = words + at + 2;
    return true;
}

static int watch_children(void) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, NULL);
    int file = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (file < 0)
        refuse("signalfd");
    return file;
}

static void reap(struct agent *agent, const struct plan *plan) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == agent->pid)
            agent_ended(agent, plan, status);
}

/* Until the launcher is gone. */
static void serve(struct agent *agent, const struct plan *plan, int children) {
    struct pollfd events[] = {
        {.fd = LIFELINE},
        {.fd = agent->reports[0], .events = POLLIN},
        {.fd = children, .events = POLLIN},
    };
    while (!(events[0].revents & (POLLHUP | POLLERR))) {
        struct signalfd_siginfo ignored;
        if (agent_timeout(agent) == 0)
            agent_start(agent, plan);
        if (poll(events, 3, agent_timeout(agent)) < 0)
            continue;
        if (events[1].revents & POLLIN)
            agent_listen(agent, plan);
        while (read(children, &ignored, sizeof ignored) > 0)
            continue;
        reap(agent, plan);
    }
}

int main(int count, char **words) {
    struct plan plan;
    struct agent agent;
    pid_t launcher = getppid();
    if (!read_plan(&plan, count, words)) {
        fprintf(stderr, "simnode: init is started by simnode run, not by hand\n");
        return 2;
    }
    umask(022);
    fcntl(REPORT, F_SETFD, FD_CLOEXEC);
    fcntl(LIFELINE, F_SETFD, FD_CLOEXEC);
    enter_namespaces(&plan);
    mount_node(&plan);
    if (chdir("/") < 0)
        refuse("/");
    int children = watch_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    agent_prepare(&agent);
    agent_start(&agent, &plan);
    serve(&agent, &plan, children);
    if (!plan.pid_namespace)
        kill_namespace_mates(launcher);
    return 0;
}
