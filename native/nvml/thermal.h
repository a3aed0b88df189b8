/* The reading of temperatures that the private table has, too. */
#ifndef SN_THERMAL_H
#define SN_THERMAL_H

#include "abi.h"

/* How far the GPU is below the temperature at which it slows down. */
nvmlReturn_t sn_get_margin(nvmlDevice_t device, int *celsius);

#endif
