/* Arguments in pieces, as nvidia-smi reads them: what stands between = and = counts as one of its own. */
#ifndef SN_SMI_TOKENS_H
#define SN_SMI_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

struct smi_token {
    const char *text;
    bool more; /* the next one is of the same argument */
};

struct smi_tokens {
    struct smi_token *token; /* from malloc */
    size_t count;
};

/* Cuts the arguments apart, in their own memory. */
void smi_cut(int count, char **arguments, struct smi_tokens *tokens);

#endif
