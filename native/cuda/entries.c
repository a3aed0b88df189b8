/* The table of all symbols, and the search in it. The functions' types are of no interest here. */
#define _GNU_SOURCE
#include "entries.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ENTRY(name, version) extern sn_entry name;
#include "entries.inc"
#undef ENTRY

struct entry {
    const char *name;
    sn_entry *function;
    int version;
};

#define ENTRY(name, version) {#name, name, version},
static const struct entry entries[] = {
#include "entries.inc"
};
#undef ENTRY
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* The first entry whose name is not before `name`. */
static size_t lower_bound(const char *name)
{
    size_t low = 0;
    size_t high = ENTRIES;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* True if `rest` is what may follow a base name: nothing, or the number of a variant (_v2). Functions for the streams of
 * each thread (_ptsz) refuse like those beside them, so nobody needs to be given them. */
static bool is_variant(const char *rest)
{
    if (strncmp(rest, "_v", 2) == 0)
        for (rest += 2; *rest >= '0' && *rest <= '9'; rest++)
            ;
    return *rest == '\0';
}

sn_entry *sn_find_entry(const char *base, int version, int newest, enum sn_entry_status *status)
{
    size_t length = strlen(base);
    const struct entry *best = NULL;

    *status = SN_ENTRY_NOT_FOUND;
    for (size_t i = lower_bound(base); i < ENTRIES && strncmp(entries[i].name, base, length) == 0; i++) {
        const struct entry *entry = &entries[i];
        if (!is_variant(entry->name + length) || entry->version > newest)
            continue;
        if (entry->version > version)
            *status = best == NULL ? SN_ENTRY_NEWER : SN_ENTRY_FOUND;
        else if (best == NULL || entry->version > best->version) {
            best = entry;
            *status = SN_ENTRY_FOUND;
        }
    }
    return best == NULL ? NULL : best->function;
}
