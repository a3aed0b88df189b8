#define _GNU_SOURCE
#include "deadline.h"

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

struct timespec sn_deadline_after(unsigned int ms)
{
    struct timespec when;

    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += (long)(ms % 1000) * NS_PER_MS;
    if (when.tv_nsec >= NS_PER_S) {
        when.tv_nsec -= NS_PER_S;
        when.tv_sec++;
    }
    return when;
}

bool sn_is_past(const struct timespec *deadline)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec : now.tv_nsec >= deadline->tv_nsec;
}
