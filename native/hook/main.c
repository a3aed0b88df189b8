/*
 * container-hook ORDER SOURCE TARGET ...: mounts what no CDI spec can have mounted, because runtimes refuse mounts below
 * /proc and sysfs has no room for new mount points. ORDER is `bind` or `overlay`; SOURCE is a path of the host, TARGET one
 * of the container.
 *
 * A container without these views works all the same, so nothing that goes wrong here ever keeps it from starting: the
 * exit code is always 0.
 */
#include "hook.h"

#include <string.h>

int main(int count, char **words)
{
    int root = open_root();

    for (int at = 1; root >= 0 && at < count; at += 3) {
        if (at + 2 >= count)
            complain("want a SOURCE and a TARGET after it", words[at], 0);
        else if (strcmp(words[at], "bind") == 0)
            bind_over(root, words[at + 1], words[at + 2]);
        else if (strcmp(words[at], "overlay") == 0)
            lay_over(root, words[at + 1], words[at + 2]);
        else
            complain("is no order; want bind or overlay", words[at], 0);
    }
    return 0;
}
