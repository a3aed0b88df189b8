/* Reads the options of a subcommand. */
#define _GNU_SOURCE
#include "subcommand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens.h"

#define USAGE 2

static const struct smi_argument *find(const struct smi_argument *known, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, known[i].brief) == 0 || strcmp(text, known[i].name) == 0)
            return &known[i];
    return NULL;
}

static int read_tokens(const struct smi_tokens *tokens, const struct smi_argument *known, size_t known_count)
{
    for (size_t i = 0; i < tokens->count; i++) {
        const char *text = tokens->token[i].text;
        const struct smi_argument *argument = find(known, known_count, text);
        if (argument == NULL) {
            printf("Option \"%s\" is not recognized.\n", text);
            return USAGE;
        }
        *argument->given = true;
        if (argument->value == NULL)
            continue;
        if (i + 1 == tokens->count || find(known, known_count, tokens->token[i + 1].text) != NULL) {
            printf("Option \"%s\" is missing its value.\n", text);
            return USAGE;
        }
        *argument->value = tokens->token[++i].text;
    }
    return 0;
}

int smi_read_arguments(int count, char **arguments, const struct smi_argument *known, size_t known_count)
{
    struct smi_tokens tokens;
    int status;

    smi_cut(count, arguments, &tokens);
    status = read_tokens(&tokens, known, known_count);
    free(tokens.token);
    return status;
}
