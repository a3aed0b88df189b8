/* The createContainer hook that our CDI specs name. A container's runtime runs it in the container's namespaces, before
 * the container's root becomes /, so both the host's files and the container's root can be reached. */
#ifndef HOOK_H
#define HOOK_H

#include <stdbool.h>

/* One line on standard error, which runtimes keep; `why` is an errno, 0 for none. */
void complain(const char *what, const char *where, int why);

/* The container's root directory, opened, from the state that the runtime writes to our standard input; -1 if it does not
 * say. */
int open_root(void);

/* The text in the JSON object `text` at `first`, and below it at `second` unless that is NULL: true and a copy of at most
 * `size` bytes in `out`, or false. */
bool json_text(const char *text, const char *first, const char *second, char *out, unsigned int size);

/* Mounts a file or directory of the host over one that the container has at `target`, read-only. */
void bind_over(int root, const char *source, const char *target);

/* Lays a directory of the host over the container's, so that what is in either shows, read-only. */
void lay_over(int root, const char *source, const char *target);

#endif
