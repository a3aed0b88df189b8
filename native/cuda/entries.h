/* From a function's base name and a CUDA version to the symbol that a program of that version means. */
#ifndef SN_ENTRIES_H
#define SN_ENTRIES_H

typedef void sn_entry(void);

/* CUdriverProcAddressQueryResult: there, not there, or there but newer than the version asked for. */
enum sn_entry_status { SN_ENTRY_FOUND, SN_ENTRY_NOT_FOUND, SN_ENTRY_NEWER };

/* The newest variant of `base` that CUDA `version` had: cuMemAlloc of 11020 is cuMemAlloc_v2. Nothing is found that came
 * after `newest`. Null unless *status is FOUND. */
sn_entry *sn_find_entry(const char *base, int version, int newest, enum sn_entry_status *status);

#endif
