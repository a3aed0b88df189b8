/* Cuts arguments into pieces. */
#define _GNU_SOURCE
#include "tokens.h"

#include <stdlib.h>
#include <string.h>

static size_t count_tokens(int count, char **arguments)
{
    size_t tokens = 0;

    for (int i = 0; i < count; i++) {
        tokens++;
        for (const char *c = arguments[i]; *c != '\0'; c++)
            tokens += *c == '=';
    }
    return tokens;
}

void smi_cut(int count, char **arguments, struct smi_tokens *tokens)
{
    struct smi_token *token = calloc(count_tokens(count, arguments) + 1, sizeof(*token));

    *tokens = (struct smi_tokens){.token = token};
    if (token == NULL)
        return;
    for (int i = 0; i < count; i++) {
        char *rest = arguments[i];
        while (rest != NULL) {
            token->text = rest;
            rest = strchr(rest, '=');
            token->more = rest != NULL;
            if (rest != NULL)
                *rest++ = '\0';
            token++;
        }
    }
    tokens->count = (size_t)(token - tokens->token);
}
