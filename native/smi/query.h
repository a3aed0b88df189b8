/* nvidia-smi -q, as lines or as XML. */
#ifndef SN_QUERY_H
#define SN_QUERY_H

#include "options.h"
#include "smi.h"

/* 0, or the exit code after a line that says what cannot be asked. */
int smi_query_check(const struct smi_options *options);
/* GPUs, or units. */
int smi_query(const struct smi_options *options, const struct smi_devices *devices);

#endif
