/* Parts of a GPU's document of which there are as many as there are. */
#ifndef SN_QUERY_LISTS_H
#define SN_QUERY_LISTS_H

#include "query_rows.h"

query_list list_mig;
query_list list_samples; /* which: nvmlSamplingType_t; format: of a double */
query_list list_retired; /* which: nvmlPageRetirementCause_t */
query_list list_supported_clocks;
query_list list_processes;
query_list list_accounted;

#endif
