/* What the library's end does to event sets. */
#ifndef SN_EVENTS_H
#define SN_EVENTS_H

/* Frees every set: the last nvmlShutdown leaves none, whether its program freed them or not. */
void sn_free_event_sets(void);

#endif
