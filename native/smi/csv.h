/* Queries that answer in comma separated values. */
#ifndef SN_SMI_CSV_H
#define SN_SMI_CSV_H

#include "smi.h"

/* Before anything is shown: whether fields and format are known. 0, or the exit code after a line. */
int smi_csv_check(const struct smi_options *options);
/* The line that names the columns, unless the format leaves it out. */
void smi_csv_header(const struct smi_options *options);
int smi_csv(const struct smi_options *options, const struct smi_devices *devices);
/* The properties that a subject has, with the other names they go by. */
void smi_csv_help(enum smi_subject subject);

#endif
