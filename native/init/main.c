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

/* SIGTERM ends a node without a pid namespace: SIGKILL for init would leave everybody else. */
static int watch_signals(const struct plan *plan) {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    if (!plan->pid_namespace)
        sigaddset(&watched, SIGTERM);
    sigprocmask(SIG_SETMASK, &watched, NULL);
    int file = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (file < 0)
        refuse("signalfd");
    return file;
}

/* True once somebody has asked for the end. */
static bool hear_signals(int signals) {
    struct signalfd_siginfo news;
    bool terminated = false;
    while (read(signals, &news, sizeof news) == sizeof news)
        terminated = terminated || news.ssi_signo == SIGTERM;
    return terminated;
}

static void reap(struct agent *agent, const struct plan *plan) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == agent->pid)
            agent_ended(agent, plan, status);
}

/* The launcher waits for the report: were it gone before the request is withdrawn, init would die with it. */
static void stay(struct pollfd *lifeline, pid_t *launcher) {
    outlive_launcher();
    report("staying");
    close(LIFELINE);
    close(REPORT);
    *lifeline = (struct pollfd){.fd = -1};
    *launcher = 0;
}

/* Until the launcher is gone, unless it has let the node outlive it; without a pid namespace also until SIGTERM. */
static void serve(struct agent *agent, const struct plan *plan, int signals, pid_t *launcher) {
    struct pollfd events[] = {
        {.fd = LIFELINE, .events = POLLIN},
        {.fd = agent->reports[0], .events = POLLIN},
        {.fd = signals, .events = POLLIN},
    };
    bool terminated = false;
    while (!terminated) {
        char byte;
        if (agent_timeout(agent) == 0)
            agent_start(agent, plan);
        if (poll(events, 3, agent_timeout(agent)) < 0)
            continue;
        if (events[1].revents & POLLIN)
            agent_listen(agent, plan);
        terminated = hear_signals(signals);
        reap(agent, plan);
        if ((events[0].revents & POLLIN) && agent->staged && read(LIFELINE, &byte, 1) == 1)
            stay(&events[0], launcher);
        else if (events[0].revents)
            break;
    }
}

int main(int count, char **words) {
    struct plan plan;
    struct agent agent;
    pid_t launcher = getppid();
    if (!read_plan(&plan, count, words)) {
        fprintf(stderr, "simnode: init is started by simnode run and simnode up, not by hand\n");
        return 2;
    }
    umask(022);
    fcntl(REPORT, F_SETFD, FD_CLOEXEC);
    fcntl(LIFELINE, F_SETFD, FD_CLOEXEC);
    fcntl(HELD, F_SETFD, FD_CLOEXEC);
    enter_namespaces(&plan);
    mount_node(&plan);
    if (chdir("/") < 0)
        refuse("/");
    int signals = watch_signals(&plan);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    agent_prepare(&agent);
    agent_start(&agent, &plan);
    serve(&agent, &plan, signals, &launcher);
    if (!plan.pid_namespace)
        kill_namespace_mates(launcher);
    return 0;
}
