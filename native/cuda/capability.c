/* The table; unlike the other limits, the throughput ratio is given only where drivers are known to agree with it. */
#include "capability.h"

#include <stddef.h>

#define KIB 1024

static const struct sn_capability capabilities[] = {
    {6, 0, 2048, 32, 64 * KIB, 48 * KIB, 0, 2},
    {6, 1, 2048, 32, 96 * KIB, 48 * KIB, 0, 32},
    {7, 0, 2048, 32, 96 * KIB, 96 * KIB, 0, 2},
    {7, 5, 1024, 16, 64 * KIB, 64 * KIB, 0, 32},
    {8, 0, 2048, 32, 164 * KIB, 163 * KIB, KIB, 2},
    {8, 6, 1536, 16, 100 * KIB, 99 * KIB, KIB, SN_LIMIT_NOT_KNOWN},
    {8, 9, 1536, 24, 100 * KIB, 99 * KIB, KIB, SN_LIMIT_NOT_KNOWN},
    {9, 0, 2048, 32, 228 * KIB, 227 * KIB, KIB, 2},
    {10, 0, 2048, 32, 228 * KIB, 227 * KIB, KIB, 2},
    {10, 3, 2048, 32, 228 * KIB, 227 * KIB, KIB, SN_LIMIT_NOT_KNOWN},
    {12, 0, 1536, 24, 100 * KIB, 99 * KIB, KIB, SN_LIMIT_NOT_KNOWN},
};

const struct sn_capability *sn_capability(unsigned int major, unsigned int minor)
{
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        if (capabilities[i].major == major && capabilities[i].minor == minor)
            return &capabilities[i];
    return NULL;
}
