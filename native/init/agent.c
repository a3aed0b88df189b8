/* The agent as init sees it: started once, started again after a crash, its reports passed on. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_BACKOFF_MS = 100, LAST_BACKOFF_MS = 5000, STEADY_MS = 10000 };

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void failed(const char *reason, const char *detail) {
    char line[1000];
    snprintf(line, sizeof line, "failed %s%s", reason, detail);
    report(line);
}

void agent_prepare(struct agent *agent) {
    memset(agent, 0, sizeof *agent);
    agent->backoff_ms = FIRST_BACKOFF_MS;
    if (pipe2(agent->reports, O_CLOEXEC) < 0 || fcntl(agent->reports[0], F_SETFL, O_NONBLOCK) < 0)
        refuse("pipe2");
}

/* In the child: the reports pipe as REPORT, no signal blocked, capabilities kept, ends with init. */
static noreturn void become_agent(const struct agent *agent, const struct plan *plan) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(agent->reports[1], REPORT);
    close(LIFELINE);
    keep_capabilities();
    execv(plan->agent[0], plan->agent);
    dprintf(REPORT, "failed cannot execute the agent %s: %s\n", plan->agent[0], strerror(errno));
    _exit(127);
}

void agent_start(struct agent *agent, const struct plan *plan) {
    agent->started = now_ms();
    agent->due = 0;
    pid_t pid = fork();
    if (pid == 0)
        become_agent(agent, plan);
    agent->pid = pid > 0 ? pid : 0;
    if (pid < 0)
        agent->due = agent->started + agent->backoff_ms;
}

static void hear(struct agent *agent, const struct plan *plan, const char *line) {
    if (agent->staged)
        return;
    if (strcmp(line, "staged") != 0) {
        report(line);
        return;
    }
    agent->staged = true;
    mount_proc_files(plan->library);
    if (mount_proc_driver(plan->library))
        report("staged");
    else
        failed("cannot mount /proc/driver: ", strerror(errno));
}

void agent_listen(struct agent *agent, const struct plan *plan) {
    char text[4096];
    ssize_t length = read(agent->reports[0], text, sizeof text - 1);
    if (length <= 0)
        return;
    text[length] = '\0';
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        hear(agent, plan, line);
}

/* Before the node is staged an end is final: the launcher is told, and whatever was wrong is on standard error. */
void agent_ended(struct agent *agent, const struct plan *plan, int status) {
    agent->pid = 0;
    agent_listen(agent, plan);
    if (!agent->staged) {
        char detail[64];
        if (WIFSIGNALED(status))
            snprintf(detail, sizeof detail, " (signal %d)", WTERMSIG(status));
        else
            snprintf(detail, sizeof detail, " (exit status %d)", WEXITSTATUS(status));
        failed("the agent ended before the node was staged", detail);
        return;
    }
    long long now = now_ms();
    if (now - agent->started >= STEADY_MS)
        agent->backoff_ms = FIRST_BACKOFF_MS;
    agent->due = now + agent->backoff_ms;
    agent->backoff_ms = agent->backoff_ms * 2 > LAST_BACKOFF_MS ? LAST_BACKOFF_MS : agent->backoff_ms * 2;
}

/* For poll: ms until the agent is due again, -1 while nothing waits. */
int agent_timeout(const struct agent *agent) {
    if (agent->due == 0)
        return -1;
    long long left = agent->due - now_ms();
    return left > 0 ? (int)left : 0;
}
