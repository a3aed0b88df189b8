/* Words for the values of several rows. */
#define _GNU_SOURCE
#include "query_words.h"

#include <stddef.h>

const char *const query_on_off[] = {"Disabled", "Enabled", "Disabled", NULL};
const char *const query_enabled[] = {"Disabled", "Enabled", NULL};
const char *const query_yes_no[] = {"No", "Yes", NULL};
const char *const query_states[] = {"P0", "P1", "P2",  "P3",  "P4",  "P5",  "P6",  "P7",      "P8",
                                     "P9", "P10", "P11", "P12", "P13", "P14", "P15", "Unknown", NULL};
