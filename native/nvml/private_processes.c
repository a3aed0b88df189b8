/* Processes as nvidia-smi asks for them: its table's rows, and the samples that pmon averages. */
#define _GNU_SOURCE
#include "private.h"
#include "processes.h"

/* 213 compute, 214 MPS, 215 graphics. An error from one empties all three, and too many are cut, not refused. */
static nvmlReturn_t fill_list(nvmlDevice_t device, unsigned int types, unsigned int *count,
                              struct sn_private_process *entries)
{
    struct sn_process processes[SN_MAX_PROCESSES];
    unsigned int number = 0;

    if (sn_get_processes(device, types, processes, &number) != NVML_SUCCESS)
        number = 0;
    if (number > *count)
        number = *count;
    *count = number;
    for (unsigned int i = 0; i < number; i++) {
        const struct sn_process *from = &processes[i];
        size_t length = strnlen(from->name, sizeof(from->name));
        entries[i].detail =
            (nvmlProcessDetail_v1_t){from->pid, from->used_bytes, from->gpu_instance, from->compute_instance, 0};
        memcpy(entries[i].name, from->name, length);
        entries[i].name[length] = '\0';
    }
    return NVML_SUCCESS;
}

nvmlReturn_t sn_private_compute(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries)
{
    return fill_list(device, SN_PROCESS_COMPUTE | SN_PROCESS_MPS, count, entries);
}

nvmlReturn_t sn_private_mps(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries)
{
    return fill_list(device, SN_PROCESS_MPS, count, entries);
}

nvmlReturn_t sn_private_graphics(nvmlDevice_t device, unsigned int *count, struct sn_private_process *entries)
{
    return fill_list(device, SN_PROCESS_GRAPHICS, count, entries);
}

/* One engine's part of a pmon sample. */
struct engine_record {
    uint32_t percent;
    uint32_t reserved;
    uint32_t pid;
    uint32_t unused[17];
};
_Static_assert(sizeof(struct engine_record) == 80, "as nvidia-smi strides");

/* SM, memory, encoder and decoder; the releases that have JPEG and OFA too ask for the MIG mode before they ask for
 * samples. The driver's version does not tell: any nvidia-smi may meet any driver. */
#define ENGINES_AT_FIRST 4
#define ENGINES_WITH_MIG 6

uint8_t sn_mig_mode_was_asked;

static unsigned int engines(void)
{
    return __atomic_load_n(&sn_mig_mode_was_asked, __ATOMIC_RELAXED) != 0 ? ENGINES_WITH_MIG : ENGINES_AT_FIRST;
}

/* 145. pmon prints the sum of a pid's percentages over the number of samples: so each process has one sample, in which
 * it counts as often as there are samples. */
nvmlReturn_t sn_private_utilization(nvmlDevice_t device, unsigned long long last_seen_us, unsigned int *value_type,
                                    unsigned int *count, void *samples)
{
    struct sn_usage processes[SN_MAX_PROCESSES];
    unsigned int number = 0;
    unsigned int records = engines();
    char *out = samples;
    nvmlReturn_t code = sn_get_usage(device, ~0u, processes, &number);

    (void)last_seen_us;
    if (code != NVML_SUCCESS)
        return code;
    number = number < *count ? number : *count;
    *count = number;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    for (unsigned int i = 0; i < number; i++) {
        const struct sn_usage *from = &processes[i];
        const uint32_t percent[] = {from->sm_util, from->mem_util, from->enc_util, from->dec_util, 0, 0};
        uint64_t stamp = sn_wall_clock_us();
        memcpy(out, &stamp, sizeof(stamp));
        out += sizeof(stamp);
        for (unsigned int engine = 0; engine < records; engine++) {
            struct engine_record record = {.percent = percent[engine] * number, .pid = from->pid};
            memcpy(out, &record, sizeof(record));
            out += sizeof(record);
        }
    }
    return NVML_SUCCESS;
}
