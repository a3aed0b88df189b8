/* Lines to the launcher. A write to a pipe of less than PIPE_BUF bytes is atomic; nobody listening is no error here. */
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void report(const char *line) {
    char text[1024];
    int length = snprintf(text, sizeof text, "%s\n", line);
    if (length >= (int)sizeof text) {
        length = sizeof text;
        text[length - 1] = '\n';
    }
    ssize_t ignored = write(REPORT, text, (size_t)length);
    (void)ignored;
}

noreturn void refuse(const char *step) {
    char line[1000];
    snprintf(line, sizeof line, "refused %s: %s", step, strerror(errno));
    report(line);
    _exit(1);
}
