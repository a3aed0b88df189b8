/* Orders to the node's agent: how a call that changes something changes it. */
#ifndef SN_ORDERS_H
#define SN_ORDERS_H

#include "access.h"

/* SUCCESS if this process may order: the agent's control socket is there and lets it in. NO_PERMISSION otherwise, as in
 * every workload, which is given no such socket. TIMEOUT, as all of these, if the agent takes half a minute. */
nvmlReturn_t sn_may_order(void);
/* Lays `assignments` over the device: KEY=VALUE texts in double quotes, separated by commas. The agent answers once
 * they can be read back. INVALID_ARGUMENT if it refuses them. */
nvmlReturn_t sn_order_set(nvmlDevice_t device, const char *assignments);
/* Takes back what was laid over these keys of the device, written alike. */
nvmlReturn_t sn_order_reset(nvmlDevice_t device, const char *keys);

#endif
