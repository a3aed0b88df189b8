/* How the csv views write numbers. */
#define _GNU_SOURCE
#include <stdio.h>

#include "columns.h"

void smi_decimal(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "%llu", number);
}

void smi_signed(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "%d", (int)number);
}

void smi_hex(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "0x%llX", number);
}

void smi_hex2(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "0x%02llX", number);
}

void smi_hex4(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "0x%04llX", number);
}

void smi_hex16(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "0x%016llX", number);
}

static void choose(const char *const *words, unsigned int count, unsigned long long number, char *out)
{
    snprintf(out, SMI_CELL_BYTES, "%s", number < count ? words[number] : "Unknown");
}

void smi_enabled(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"Disabled", "Enabled"};

    choose(words, 2, number, out);
}

/* Whatever is not 0 is enabled. */
void smi_on(unsigned long long number, char out[SMI_CELL_BYTES])
{
    smi_enabled(number != 0, out);
}

/* Nothing but 1 is enabled. */
void smi_one(unsigned long long number, char out[SMI_CELL_BYTES])
{
    smi_enabled(number == 1, out);
}

void smi_yes(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "%s", number == 0 ? "No" : "Yes");
}

/* From milliwatts, in single precision as nvidia-smi divides: 5 mW are 0.00 W. */
void smi_watts(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "%.2f", (double)((float)number / 1000.0f));
}

/* Less than a watt is one. */
void smi_watts_drawn(unsigned long long number, char out[SMI_CELL_BYTES])
{
    smi_watts(number < 1000 ? 1000 : number, out);
}

void smi_mebibytes(unsigned long long number, char out[SMI_CELL_BYTES])
{
    snprintf(out, SMI_CELL_BYTES, "%llu", smi_mib(number));
}

void smi_performance_state(unsigned long long number, char out[SMI_CELL_BYTES])
{
    if (number <= 15)
        snprintf(out, SMI_CELL_BYTES, "P%llu", number);
    else
        snprintf(out, SMI_CELL_BYTES, "Unknown");
}

void smi_compute_mode(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};

    choose(words, 4, number, out);
}

void smi_addressing_mode(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"None", "HMM", "ATS"};

    choose(words, 3, number, out);
}

void smi_operation_mode(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"All On", "Compute", "Low Double Precision"};

    choose(words, 3, number, out);
}

void smi_recovery_action(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};

    choose(words, 5, number, out);
}

void smi_peer_type(unsigned long long number, char out[SMI_CELL_BYTES])
{
    static const char *const words[] = {"Direct Connected", "Switch Connected"};

    choose(words, 2, number, out);
}
