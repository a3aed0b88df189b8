/* The two forms of a document. XML is indented by tabs, lines by four spaces. */
#define _GNU_SOURCE
#include "document.h"

#include <stdio.h>
#include <string.h>

#define STEP 4

static void indent(const struct page *page)
{
    for (unsigned int i = 0; i < page->depth; i++)
        fputs(page->xml ? "\t" : "    ", stdout);
}

void page_open(struct page *page, const char *xml, const char *text)
{
    const char *name = page->xml ? xml : text;

    if (name == NULL)
        return;
    if (*name != '\0') {
        indent(page);
        printf(page->xml ? "<%s>\n" : "%s\n", name);
    }
    page->depth++;
}

void page_close(struct page *page, const char *xml, const char *text)
{
    if ((page->xml ? xml : text) == NULL)
        return;
    page->depth--;
    if (!page->xml)
        return;
    indent(page);
    printf("</%s>\n", xml);
}

void page_leaf(const struct page *page, const char *xml, const char *text, const char *value)
{
    if ((page->xml ? xml : text) == NULL)
        return;
    indent(page);
    if (page->xml)
        printf("<%s>%s</%s>\n", xml, value, xml);
    else
        printf("%-*s: %s\n", (int)(page->column - STEP * page->depth), text, value);
}

void page_escape(const char *value, char *out, unsigned int size)
{
    static const struct {
        char plain;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};
    unsigned int at = 0;

    for (; *value != '\0'; value++) {
        char one[] = {*value, '\0'};
        const char *put = one;
        for (unsigned int i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
            if (entities[i].plain == *value)
                put = entities[i].entity;
        if (at + strlen(put) >= size)
            break;
        at += (unsigned int)snprintf(out + at, size - at, "%s", put);
    }
    out[at] = '\0';
}
