/* Cells have fixed places; what is too long for one is cut, as nvidia-smi cuts it. */
#define _GNU_SOURCE
#include "row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char dots[] = "...";

void row_start(struct row *row, const char *frame)
{
    snprintf(row->text, sizeof(row->text), "%s", frame);
}

void row_put(struct row *row, unsigned int at, unsigned int width, const char *text)
{
    size_t length = strlen(text);

    if (length <= width) {
        memcpy(row->text + at, text, length);
        return;
    }
    memcpy(row->text + at, text, width - (sizeof(dots) - 1));
    memcpy(row->text + at + width - (sizeof(dots) - 1), dots, sizeof(dots) - 1);
}

void row_format(struct row *row, unsigned int at, unsigned int width, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    row_put(row, at, width, text);
}

void row_print(const struct row *row)
{
    puts(row->text);
}
