/* What goes wrong, in one line, for whoever reads the runtime's log. */
#include "hook.h"

#include <stdio.h>
#include <string.h>

void complain(const char *what, const char *where, int why)
{
    if (why)
        fprintf(stderr, "simnode: container-hook: %s: %s: %s\n", where, what, strerror(why));
    else
        fprintf(stderr, "simnode: container-hook: %s: %s\n", where, what);
}
