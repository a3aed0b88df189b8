/* Where the columns' values come from. Each source tells one of several values; which of them, its enum says. */
#ifndef SN_SMI_SOURCES_H
#define SN_SMI_SOURCES_H

#include "columns.h"
#include "slots.h"

enum smi_identity_part {
    SMI_NAME,
    SMI_SERIAL,
    SMI_UUID,
    SMI_BUS_ID,
    SMI_VBIOS,
    SMI_INFOROM_IMAGE,
    SMI_INFOROM_OEM,
    SMI_INFOROM_ECC,
    SMI_INFOROM_POWER
};
enum smi_pci_part {
    SMI_PCI_DOMAIN,
    SMI_PCI_BUS,
    SMI_PCI_DEVICE,
    SMI_PCI_BASE_CLASS,
    SMI_PCI_SUB_CLASS,
    SMI_PCI_ID,
    SMI_PCI_SUBSYSTEM_ID
};
enum smi_memory_part { SMI_TOTAL, SMI_RESERVED, SMI_USED, SMI_FREE };
enum smi_engine {
    SMI_ENGINE_GPU,
    SMI_ENGINE_MEMORY,
    SMI_ENGINE_ENCODER,
    SMI_ENGINE_DECODER,
    SMI_ENGINE_JPEG,
    SMI_ENGINE_OFA
};
enum smi_encoder_part { SMI_SESSIONS, SMI_FPS, SMI_LATENCY };
/* Modes of two halves, but for the last. */
enum smi_mode_part {
    SMI_ECC_CURRENT,
    SMI_ECC_PENDING,
    SMI_MIG_CURRENT,
    SMI_MIG_PENDING,
    SMI_GSP_CURRENT,
    SMI_GSP_DEFAULT,
    SMI_GOM_CURRENT,
    SMI_GOM_PENDING,
    SMI_C2C
};
enum smi_reset_part { SMI_RESET_REQUIRED, SMI_DRAIN_RECOMMENDED };
enum smi_reasons { SMI_REASONS_SUPPORTED, SMI_REASONS_ACTIVE };
enum smi_clock_kind { SMI_CURRENT = 0, SMI_APPLICATION = 16, SMI_DEFAULT = 32, SMI_MAX = 48 };
enum smi_clock_domain { SMI_GRAPHICS, SMI_SM, SMI_MEMORY, SMI_VIDEO };
enum smi_limit { SMI_MIN_LIMIT, SMI_MAX_LIMIT };
enum smi_fabric_part { SMI_FABRIC_STATE, SMI_FABRIC_STATUS, SMI_FABRIC_CLIQUE, SMI_FABRIC_CLUSTER };
/* Of an ECC counter: corrected or not, since when, where. */
enum smi_ecc_part {
    SMI_CORRECTED = 0,
    SMI_UNCORRECTED = 32,
    SMI_VOLATILE = 0,
    SMI_AGGREGATE = 16,
    SMI_EVERYWHERE = 15
};
enum smi_field { SMI_FIELD_POWER_AVERAGE = 185, SMI_FIELD_POWER_INSTANT = 186 };

/* N/A on every GPU: of vGPUs and Windows. */
smi_text_fn smi_not_here;
smi_text_fn smi_timestamp;
smi_text_fn smi_driver;
smi_text_fn smi_count;
smi_text_fn smi_identity;
smi_text_fn smi_compute_capability;
smi_number_fn smi_pci;
smi_number_fn smi_slot_number;

smi_number_fn smi_memory;
smi_number_fn smi_protected_memory;
smi_number_fn smi_ecc_errors;
smi_number_fn smi_retired_pages;

smi_number_fn smi_mode;
smi_number_fn smi_display_mode;
smi_number_fn smi_reset_status;
smi_text_fn smi_fabric;

smi_number_fn smi_utilization;
smi_number_fn smi_encoder;
smi_number_fn smi_clock;
smi_number_fn smi_event_reasons;
smi_text_fn smi_event_reason;
smi_number_fn smi_temperature;
smi_text_fn smi_memory_temperature;
smi_number_fn smi_field_number;
smi_number_fn smi_power_limit;

/* Cells by their offset in struct sn_device. */
smi_number_fn smi_word_cell;
smi_number_fn smi_gauge_cell;
smi_number_fn smi_wide_cell;
smi_number_fn smi_counter_cell;
smi_text_fn smi_chassis;

/* The library's own, of which a column needs no more than the number. */
smi_word_fn nvmlDeviceGetAccountingBufferSize;
smi_word_fn nvmlDeviceGetAccountingMode;
smi_word_fn nvmlDeviceGetCurrPcieLinkGeneration;
smi_word_fn nvmlDeviceGetCurrPcieLinkWidth;
smi_word_fn nvmlDeviceGetDisplayMode;
smi_word_fn nvmlDeviceGetGpuMaxPcieLinkGeneration;
smi_word_fn nvmlDeviceGetMaxPcieLinkGeneration;
smi_word_fn nvmlDeviceGetMaxPcieLinkWidth;
smi_word_fn nvmlDeviceGetPowerManagementDefaultLimit;
smi_word_fn nvmlDeviceGetPowerManagementLimit;
smi_word_fn nvmlDeviceGetPowerManagementMode;
smi_word_fn nvmlDeviceGetRetiredPagesPendingStatus;

#endif
