/* The simulated driver's version, for what depends on it. */
#ifndef SN_DRIVER_H
#define SN_DRIVER_H

/* major * 1000 + minor, 580105 for 580.105.08; 0 where there is no image. It may change while a program runs. */
unsigned int sn_driver(void);

#endif
