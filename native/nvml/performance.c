/* Performance states and what belongs to them: their clocks as numbers and as text, how busy each domain is.
 *
 * A board has P0, and P8 if one of its memory clocks is an idle one. */
#define _GNU_SOURCE
#include <stdio.h>

#include "clocks.h"

#define AT(member) offsetof(struct sn_device, member)
#define IDLE_MEMORY_MHZ 1000 /* slower ones are P8's */
#define ARCHITECTURE_AMPERE 7

/* The clocks of one performance state, MHz. */
struct state {
    unsigned int number;
    unsigned int memory_min;
    unsigned int memory_max;
    unsigned int graphics_min;
    unsigned int graphics_max;
};

static nvmlReturn_t copy_states(nvmlDevice_t device, struct state states[2], unsigned int *count)
{
    struct sn_clocks clocks[SN_MAX_MEMORY_CLOCKS];
    unsigned int number = 0;
    nvmlReturn_t code = sn_copy_clocks(device, clocks, &number);

    *count = 0;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < number; i++) {
        const struct sn_clocks *from = &clocks[i];
        unsigned int steps = from->count < SN_MAX_GRAPHICS_CLOCKS ? from->count : SN_MAX_GRAPHICS_CLOCKS;
        unsigned int pstate = from->memory_mhz < IDLE_MEMORY_MHZ ? NVML_PSTATE_8 : NVML_PSTATE_0;
        struct state *to = &states[*count == 0 ? 0 : *count - 1];
        if (steps == 0)
            continue;
        if (*count == 0 || (to->number != pstate && *count < 2)) {
            to = &states[(*count)++];
            *to = (struct state){pstate, from->memory_mhz, from->memory_mhz, from->graphics_mhz[steps - 1],
                                 from->graphics_mhz[0]};
        }
        to->memory_min = from->memory_mhz;
    }
    return code == NVML_SUCCESS && *count == 0 ? NVML_ERROR_NOT_SUPPORTED : code;
}

/* `size` is in bytes; what is left of the array is UNKNOWN. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, unsigned int *pstates,
                                                                 unsigned int size)
{
    struct state states[2];
    unsigned int count;
    nvmlReturn_t code;

    if (pstates == NULL)
        return sn_bad_argument(device);
    code = copy_states(device, states, &count);
    if (code == NVML_SUCCESS && size < count * sizeof(*pstates))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < size / sizeof(*pstates); i++)
        pstates[i] = i < count ? states[i].number : NVML_PSTATE_UNKNOWN;
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, unsigned int type, unsigned int pstate,
                                                          unsigned int *min_mhz, unsigned int *max_mhz)
{
    struct state states[2];
    unsigned int count;
    unsigned int at = 0;
    nvmlReturn_t code;

    if (type >= NVML_CLOCK_COUNT || min_mhz == NULL || max_mhz == NULL)
        return sn_bad_argument(device);
    code = copy_states(device, states, &count);
    if (code != NVML_SUCCESS)
        return code;
    while (at < count && states[at].number != pstate)
        at++;
    if (at == count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    *min_mhz = type == NVML_CLOCK_MEM ? states[at].memory_min : states[at].graphics_min;
    *max_mhz = type == NVML_CLOCK_MEM ? states[at].memory_max : states[at].graphics_max;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDevicePerfModes_v1_t *modes)
{
    struct state states[2];
    unsigned int count;
    size_t length = 0;
    nvmlReturn_t code;

    if (modes == NULL)
        return sn_bad_argument(device);
    code = copy_states(device, states, &count);
    if (code != NVML_SUCCESS)
        return code;
    if (modes->version != SN_TAG(nvmlDevicePerfModes_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    for (unsigned int i = count; i-- > 0;) {
        const struct state *state = &states[i];
        length += (size_t)snprintf(modes->str + length, sizeof(modes->str) - length,
                                   "perf=%u, nvclock=%u, nvclockmin=%u, nvclockmax=%u, nvclockeditable=0, memclock=%u, "
                                   "memclockmin=%u, memclockmax=%u, memclockeditable=0%s",
                                   state->number, state->graphics_max, state->graphics_min, state->graphics_max,
                                   state->memory_max, state->memory_min, state->memory_max, i > 0 ? " ; " : "");
    }
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device, nvmlDeviceCurrentClockFreqs_v1_t *clocks)
{
    static const struct sn_want wants[] = {
        {SN_WORD, AT(performance_state)},
        {SN_GAUGE, AT(clocks_graphics_current)},
        {SN_GAUGE, AT(clocks_memory_current)},
    };
    uint64_t values[3];
    nvmlReturn_t code;

    if (clocks == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 3, values);
    if (code != NVML_SUCCESS)
        return code;
    if (clocks->version != SN_TAG(nvmlDeviceCurrentClockFreqs_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(clocks->str, sizeof(clocks->str), "perf=%u, nvclock=%u, memclock=%u", (unsigned int)values[0],
             (unsigned int)values[1], (unsigned int)values[2]);
    return NVML_SUCCESS;
}

/* How busy the graphics, memory and video domains are; a bus domain is not measured. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *info)
{
    static const struct sn_want wants[] = {
        {SN_GAUGE, AT(utilization_gpu)},
        {SN_GAUGE, AT(utilization_memory)},
        {SN_GAUGE, AT(utilization_decoder)},
    };
    static const unsigned int domains[] = {NVML_GPU_UTILIZATION_DOMAIN_GPU, NVML_GPU_UTILIZATION_DOMAIN_FB,
                                           NVML_GPU_UTILIZATION_DOMAIN_VID};
    uint64_t values[3];
    nvmlReturn_t code;

    if (info == NULL)
        return sn_bad_argument(device);
    code = sn_get_cells(device, wants, 3, values);
    if (code != NVML_SUCCESS)
        return code;
    memset(info, 0, sizeof(*info));
    for (unsigned int i = 0; i < 3; i++) {
        info->utilization[domains[i]].bIsPresent = 1;
        info->utilization[domains[i]].percentage = (unsigned int)values[i];
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t since_ampere(nvmlDevice_t device)
{
    unsigned int architecture;
    nvmlReturn_t code = sn_get_word(device, AT(architecture), &architecture);

    return code == NVML_SUCCESS && architecture < ARCHITECTURE_AMPERE ? NVML_ERROR_NOT_SUPPORTED : code;
}

/* No clock ever fails. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t device, sn_clk_mon_status *status)
{
    nvmlReturn_t code = status == NULL ? sn_bad_argument(device) : since_ampere(device);

    if (code == NVML_SUCCESS)
        *status = (sn_clk_mon_status){0, 0};
    return code;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device, unsigned int *enabled)
{
    nvmlReturn_t code = enabled == NULL ? sn_bad_argument(device) : since_ampere(device);

    if (code == NVML_SUCCESS)
        *enabled = 1;
    return code;
}

/* Application clocks are anybody's to set; boards without auto boost have nothing to restrict. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, unsigned int api, unsigned int *restricted)
{
    unsigned int mhz;
    nvmlReturn_t code;

    if (api > NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS || restricted == NULL)
        return sn_bad_argument(device);
    if (api == NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS)
        return sn_refuse_device(device);
    code = sn_get_word(device, AT(clocks_graphics_app), &mhz);
    if (code == NVML_SUCCESS)
        *restricted = 0;
    return code;
}
