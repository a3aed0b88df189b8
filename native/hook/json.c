/* As much of JSON as it takes to find a text by its key: the documents are a runtime's own, and well-formed. */
#include "hook.h"

#include <stddef.h>
#include <string.h>

static const char *blank(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Past the text that begins at `at`; NULL if it has no end. */
static const char *past_text(const char *at)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        if (*at == '\0')
            return NULL;
    }
    return at + 1;
}

/* Past any value; NULL if it has no end. */
static const char *past_value(const char *at)
{
    unsigned int depth = 0;

    do {
        at = blank(at);
        if (*at == '\0')
            return NULL;
        if (*at == '"') {
            at = past_text(at);
            if (at == NULL)
                return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return NULL;
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            if (depth == 0)
                return NULL;
            at++;
        } else {
            at += strcspn(at, " \t\r\n\"{}[],:");
        }
    } while (depth > 0);
    return at;
}

/* The value of a member of the object at `at`; NULL if there is no such member, or no object. */
static const char *member(const char *at, const char *key)
{
    size_t length = strlen(key);

    at = blank(at);
    if (*at != '{')
        return NULL;
    for (at = blank(at + 1); *at == '"'; at = blank(at + 1)) {
        const char *name = at + 1;
        const char *value = past_text(at);

        if (value == NULL || *(value = blank(value)) != ':')
            return NULL;
        value = blank(value + 1);
        if (strncmp(name, key, length) == 0 && name[length] == '"')
            return value;
        at = past_value(value);
        if (at == NULL || *(at = blank(at)) != ',')
            return NULL;
    }
    return NULL;
}

/*
 * The letter that an escape stands for, `at` being behind its backslash; the escape's length, 0 if it is none to expect.
 * Paths hold no control characters, so there are those of one letter, and \u00XX, which Go writes for `&`, `<` and `>`.
 */
static unsigned int unescaped(const char *at, char *letter)
{
    unsigned int value = 0;

    if (*at == '"' || *at == '\\' || *at == '/') {
        *letter = *at;
        return 1;
    }
    if (*at != 'u')
        return 0;
    for (unsigned int digit = 1; digit <= 4; digit++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *found = at[digit] == '\0' ? NULL : strchr(digits, at[digit]);

        if (found == NULL)
            return 0;
        value = value * 16 + (unsigned int)(found - digits) % 16;
    }
    *letter = (char)value;
    return value > 0 && value < 128 ? 5 : 0;
}

static bool copy_text(const char *at, char *out, unsigned int size)
{
    unsigned int used = 0;

    if (at == NULL || *at != '"')
        return false;
    for (at++; *at != '"'; at++) {
        char letter = *at;

        if (letter == '\\') {
            unsigned int length = unescaped(at + 1, &letter);

            if (length == 0)
                return false;
            at += length;
        }
        if (letter == '\0' || used + 1 >= size)
            return false;
        out[used++] = letter;
    }
    out[used] = '\0';
    return true;
}

bool json_text(const char *text, const char *first, const char *second, char *out, unsigned int size)
{
    const char *value = member(text, first);

    if (value != NULL && second != NULL)
        value = member(value, second);
    return copy_text(value, out, size);
}
