/* Queries about what a device has several of. */
#ifndef SN_SMI_LISTS_H
#define SN_SMI_LISTS_H

#include "columns.h"

/* Of every subject but SMI_GPU. */
struct smi_query smi_list_query(enum smi_subject subject);

void smi_compute_apps(nvmlDevice_t device, struct smi_rows *rows);
void smi_accounted_apps(nvmlDevice_t device, struct smi_rows *rows);
void smi_supported_clocks(nvmlDevice_t device, struct smi_rows *rows);
void smi_pages(nvmlDevice_t device, struct smi_rows *rows);

#endif
