/* How long a call waits at most, by a clock that nobody sets. */
#ifndef SN_DEADLINE_H
#define SN_DEADLINE_H

#include <stdbool.h>
#include <time.h>

/* The moment that is so many ms from now, on CLOCK_MONOTONIC. */
struct timespec sn_deadline_after(unsigned int ms);
bool sn_is_past(const struct timespec *deadline);

#endif
