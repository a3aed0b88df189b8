/* Sources of particular rows, and what the others name. */
#ifndef SN_QUERY_READS_H
#define SN_QUERY_READS_H

#include "query_rows.h"

/* Write a value as the row shows it, or a text, and succeed: what a source does at its end. */
nvmlReturn_t query_tell(const struct subject *subject, const struct element *element, uint64_t value, char *out);
nvmlReturn_t query_tell_text(const char *text, char *out);

/* What no simulated board has. */
query_read read_refused;
query_read read_gsp_version;
query_read read_inforom_object;
query_read read_bbx_time;
query_read read_atomics;   /* which: 0 outbound, 1 inbound */
query_read read_reasons;   /* whether they are known at all */
query_read read_reason;    /* which: the bit */
query_read read_ecc_count; /* which: the location; scope: ECC_OF */
query_read read_ecc_total;
query_read read_sram; /* which: the offset in the status */
query_read read_mig_errors;
query_read read_temperature;
query_read read_bus_id;
query_read read_margin;
query_read read_memory_temperature;
query_read read_target_temperature;
query_read read_egm;
query_read read_fabric_state;
query_read read_fabric_status;
query_read read_fabric_clique;
query_read read_fabric_cluster;
query_read read_fabric_health; /* which: the lowest bit; scope: how many; words: by their value */
query_read read_fabric_summary;
query_read read_process_word; /* which: the offset */
query_read read_process_type;
query_read read_process_name;
query_read read_process_memory;

query_show show_watts;
query_show show_draw; /* at least a watt */
query_show show_mib;

/* Structures to fill, as the functions that have several answers. */
struct bbx {
    unsigned long long time_us;
    unsigned long long duration_us;
};
struct remapped {
    unsigned int correctable;
    unsigned int uncorrectable;
    unsigned int pending;
    unsigned int failed;
};
nvmlReturn_t fill_bbx(nvmlDevice_t device, void *bbx);
nvmlReturn_t fill_c2c(nvmlDevice_t device, void *mode);
nvmlReturn_t fill_pci(nvmlDevice_t device, void *pci);
nvmlReturn_t fill_memory(nvmlDevice_t device, void *memory);
nvmlReturn_t fill_bar1(nvmlDevice_t device, void *memory);
nvmlReturn_t fill_protected_memory(nvmlDevice_t device, void *memory);
nvmlReturn_t fill_rates(nvmlDevice_t device, void *rates);
nvmlReturn_t fill_encoder_stats(nvmlDevice_t device, void *stats);
nvmlReturn_t fill_fbc_stats(nvmlDevice_t device, void *stats);
nvmlReturn_t fill_remapped(nvmlDevice_t device, void *remapped);
nvmlReturn_t fill_histogram(nvmlDevice_t device, void *banks);
nvmlReturn_t fill_attributes(nvmlDevice_t device, void *attributes);
/* Words. */
nvmlReturn_t word_customer_boost(nvmlDevice_t device, unsigned int *mhz);
nvmlReturn_t word_addressing_mode(nvmlDevice_t device, unsigned int *mode);
nvmlReturn_t word_sparse_operation_mode(nvmlDevice_t device, unsigned int *mode);

#define ECC_OF(type, counter) (NVML_MEMORY_ERROR_TYPE_##type | (counter) << 1)
#define CELL(member) offsetof(struct sn_device, member)
#define TEXT(member) sizeof(((struct sn_device *)0)->member.value)

/* The library as -q calls it. */
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int *brand);
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture);
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned int *on);
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, unsigned int *on);
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *yes);
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *number, unsigned int length);
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device, unsigned long long *us, unsigned long *duration_us);
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int *mode);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *kib_per_s);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions, unsigned int *fps,
                                       unsigned int *latency_us);
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *stats);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                       unsigned long long *addresses);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned int *pending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                       unsigned int *pending, unsigned int *failed);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *banks);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int threshold, unsigned int *celsius);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned int *state);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info);
nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_v1_t *capabilities);
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_v1_t *mode);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type, unsigned long long last_seen_us,
                                  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids);

#endif
