/* GPU performance monitoring. */
#ifndef SN_GPM_H
#define SN_GPM_H

/* The last nvmlShutdown takes back what callers have not. */
void sn_free_gpm_samples(void);

#endif
