/* Views that are called by a word instead of an option, with options of their own. */
#ifndef SN_SMI_SUBCOMMAND_H
#define SN_SMI_SUBCOMMAND_H

#include "smi.h"

/* An option of a subcommand. */
struct smi_argument {
    const char *brief;
    const char *name;
    bool *given;
    const char **value; /* or null: it takes none */
};

/* 0, or the exit code after a line about the first argument that means nothing or lacks its value. */
int smi_read_arguments(int count, char **arguments, const struct smi_argument *known, size_t known_count);

/* Both take what follows their word. */
int smi_topo(int count, char **arguments);
int smi_nvlink(int count, char **arguments);

#endif
