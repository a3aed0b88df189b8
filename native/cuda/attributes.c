/* cuDeviceGetAttribute: what the image says, what the compute capability says, and what every GPU since Pascal has.
 *
 * An attribute that nothing here tells (the size of the L2 cache, say) answers NOT_SUPPORTED, a number that is none's
 * INVALID_VALUE. Limits are those of the CUDA programming guide's table of technical specifications. */
#define _GNU_SOURCE
#include "attributes.h"
#include "capability.h"
#include "driver_api.h"

#define NODE_BITS 64
#define NODE_WORDS 4

#define ALWAYS(number) {.source = FROM_NOWHERE, .value = number}
#define WORD_OF(member, scale) {.source = FROM_WORD, .at = offsetof(struct sn_device, member), .value = scale}
#define SWITCH_OF(member) {.source = FROM_SWITCH, .at = offsetof(struct sn_device, member)}
#define LIMIT_OF(member) {.source = FROM_CAPABILITY, .at = offsetof(struct sn_capability, member)}
#define SINCE(major, number, until) {.source = FROM_MAJOR, .at = major, .value = number, .before = until}
#define ADDRESSING(least) {.source = FROM_ADDRESSING, .value = least}

enum addressing { NO_ADDRESSING, HMM, ATS };

enum source {
    NOT_KNOWN,
    FROM_NOWHERE,    /* `value` */
    FROM_WORD,       /* the word at `at`, times `value` */
    FROM_SWITCH,     /* the word at `at`, 0 where there is none */
    FROM_CAPABILITY, /* the limit at `at` */
    FROM_MAJOR,      /* `value` since capability `at`.0, `before` until then */
    FROM_ADDRESSING, /* whether the addressing mode is `value` or more */
    FROM_NUMA_NODE,  /* whether the GPU's memory is a NUMA node */
    FROM_AFFINITY,   /* the NUMA node of the host that is nearest */
};

struct rule {
    enum source source;
    size_t at;
    int value;
    int before;
};

static const struct rule rules[ATTR_COUNT] = {
    [ATTR_MAX_THREADS_PER_BLOCK] = ALWAYS(1024),
    [ATTR_MAX_BLOCK_DIM_X] = ALWAYS(1024),
    [ATTR_MAX_BLOCK_DIM_Y] = ALWAYS(1024),
    [ATTR_MAX_BLOCK_DIM_Z] = ALWAYS(64),
    [ATTR_MAX_GRID_DIM_X] = ALWAYS(0x7fffffff),
    [ATTR_MAX_GRID_DIM_Y] = ALWAYS(65535),
    [ATTR_MAX_GRID_DIM_Z] = ALWAYS(65535),
    [ATTR_MAX_SHARED_MEMORY_PER_BLOCK] = ALWAYS(49152),
    [ATTR_TOTAL_CONSTANT_MEMORY] = ALWAYS(65536),
    [ATTR_WARP_SIZE] = ALWAYS(32),
    [ATTR_MAX_PITCH] = ALWAYS(0x7fffffff),
    [ATTR_MAX_REGISTERS_PER_BLOCK] = ALWAYS(65536),
    [ATTR_CLOCK_RATE] = WORD_OF(clocks_sm_max, 1000),
    [ATTR_TEXTURE_ALIGNMENT] = ALWAYS(512),
    [ATTR_GPU_OVERLAP] = ALWAYS(1),
    [ATTR_MULTIPROCESSOR_COUNT] = WORD_OF(multiprocessor_count, 1),
    [ATTR_KERNEL_EXEC_TIMEOUT] = ALWAYS(0),
    [ATTR_INTEGRATED] = ALWAYS(0),
    [ATTR_CAN_MAP_HOST_MEMORY] = ALWAYS(1),
    [ATTR_COMPUTE_MODE] = WORD_OF(compute_mode, 1),
    [ATTR_MAXIMUM_TEXTURE1D_WIDTH] = ALWAYS(131072),
    [ATTR_MAXIMUM_TEXTURE2D_WIDTH] = ALWAYS(131072),
    [ATTR_MAXIMUM_TEXTURE2D_HEIGHT] = ALWAYS(65536),
    [ATTR_MAXIMUM_TEXTURE3D_WIDTH] = ALWAYS(16384),
    [ATTR_MAXIMUM_TEXTURE3D_HEIGHT] = ALWAYS(16384),
    [ATTR_MAXIMUM_TEXTURE3D_DEPTH] = ALWAYS(16384),
    [ATTR_MAXIMUM_TEXTURE2D_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] = ALWAYS(2048),
    [ATTR_SURFACE_ALIGNMENT] = ALWAYS(512),
    [ATTR_CONCURRENT_KERNELS] = ALWAYS(1),
    [ATTR_ECC_ENABLED] = SWITCH_OF(ecc_mode_current),
    [ATTR_PCI_BUS_ID] = WORD_OF(pci_bus, 1),
    [ATTR_PCI_DEVICE_ID] = WORD_OF(pci_device, 1),
    [ATTR_TCC_DRIVER] = ALWAYS(0),
    [ATTR_MEMORY_CLOCK_RATE] = WORD_OF(clocks_memory_max, 1000),
    [ATTR_GLOBAL_MEMORY_BUS_WIDTH] = WORD_OF(memory_memory_bus_width, 1),
    [ATTR_MAX_THREADS_PER_MULTIPROCESSOR] = LIMIT_OF(threads_per_multiprocessor),
    [ATTR_UNIFIED_ADDRESSING] = ALWAYS(1),
    [ATTR_MAXIMUM_TEXTURE1D_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] = ALWAYS(2048),
    [ATTR_CAN_TEX2D_GATHER] = ALWAYS(1),
    [ATTR_MAXIMUM_TEXTURE2D_GATHER_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE2D_GATHER_HEIGHT] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE] = ALWAYS(8192),
    [ATTR_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE] = ALWAYS(8192),
    [ATTR_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE] = ALWAYS(32768),
    [ATTR_PCI_DOMAIN_ID] = WORD_OF(pci_domain, 1),
    [ATTR_TEXTURE_PITCH_ALIGNMENT] = ALWAYS(32),
    [ATTR_MAXIMUM_TEXTURECUBEMAP_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS] = ALWAYS(2046),
    [ATTR_MAXIMUM_SURFACE1D_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACE2D_WIDTH] = ALWAYS(131072),
    [ATTR_MAXIMUM_SURFACE2D_HEIGHT] = ALWAYS(65536),
    [ATTR_MAXIMUM_SURFACE3D_WIDTH] = ALWAYS(16384),
    [ATTR_MAXIMUM_SURFACE3D_HEIGHT] = ALWAYS(16384),
    [ATTR_MAXIMUM_SURFACE3D_DEPTH] = ALWAYS(16384),
    [ATTR_MAXIMUM_SURFACE1D_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACE1D_LAYERED_LAYERS] = ALWAYS(2048),
    [ATTR_MAXIMUM_SURFACE2D_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACE2D_LAYERED_HEIGHT] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACE2D_LAYERED_LAYERS] = ALWAYS(2048),
    [ATTR_MAXIMUM_SURFACECUBEMAP_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS] = ALWAYS(2046),
    [ATTR_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = ALWAYS(268435456),
    [ATTR_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = ALWAYS(131072),
    [ATTR_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = ALWAYS(65000),
    [ATTR_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = ALWAYS(2097120),
    [ATTR_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH] = ALWAYS(32768),
    [ATTR_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT] = ALWAYS(32768),
    [ATTR_COMPUTE_CAPABILITY_MAJOR] = WORD_OF(compute_capability_major, 1),
    [ATTR_COMPUTE_CAPABILITY_MINOR] = WORD_OF(compute_capability_minor, 1),
    [ATTR_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH] = ALWAYS(32768),
    [ATTR_STREAM_PRIORITIES_SUPPORTED] = ALWAYS(1),
    [ATTR_GLOBAL_L1_CACHE_SUPPORTED] = ALWAYS(1),
    [ATTR_LOCAL_L1_CACHE_SUPPORTED] = ALWAYS(1),
    [ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = LIMIT_OF(shared_per_multiprocessor),
    [ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR] = ALWAYS(65536),
    [ATTR_MANAGED_MEMORY] = ALWAYS(1),
    [ATTR_MULTI_GPU_BOARD] = WORD_OF(multigpu_board, 1),
    [ATTR_HOST_NATIVE_ATOMIC_SUPPORTED] = SWITCH_OF(c2c_mode),
    [ATTR_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = LIMIT_OF(single_to_double_ratio),
    [ATTR_PAGEABLE_MEMORY_ACCESS] = ADDRESSING(HMM),
    [ATTR_CONCURRENT_MANAGED_ACCESS] = ALWAYS(1),
    [ATTR_COMPUTE_PREEMPTION_SUPPORTED] = ALWAYS(1),
    [ATTR_COOPERATIVE_LAUNCH] = ALWAYS(1),
    [ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = LIMIT_OF(shared_per_block_at_most),
    [ATTR_HOST_REGISTER_SUPPORTED] = ALWAYS(1),
    [ATTR_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES] = ADDRESSING(ATS),
    [ATTR_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST] = ADDRESSING(ATS),
    [ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = ALWAYS(1),
    [ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = ALWAYS(1),
    [ATTR_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED] = ALWAYS(0),
    [ATTR_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED] = ALWAYS(0),
    [ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR] = LIMIT_OF(blocks_per_multiprocessor),
    [ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK] = LIMIT_OF(shared_reserved_per_block),
    [ATTR_SPARSE_CUDA_ARRAY_SUPPORTED] = ALWAYS(1),
    [ATTR_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED] = ALWAYS(1),
    [ATTR_MEMORY_POOLS_SUPPORTED] = ALWAYS(1),
    [ATTR_CLUSTER_LAUNCH] = SINCE(9, 1, 0),
    [ATTR_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED] = ALWAYS(1),
    [ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS] = ALWAYS(1),
    [ATTR_CAN_USE_STREAM_WAIT_VALUE_NOR] = SINCE(7, 1, 0),
    [ATTR_IPC_EVENT_SUPPORTED] = ALWAYS(1),
    [ATTR_MEM_SYNC_DOMAIN_COUNT] = SINCE(9, 4, 1),
    [ATTR_TENSOR_MAP_ACCESS_SUPPORTED] = SINCE(9, 1, 0),
    [ATTR_UNIFIED_FUNCTION_POINTERS] = ALWAYS(1),
    [ATTR_NUMA_CONFIG] = {.source = FROM_NUMA_NODE},
    [ATTR_NUMA_ID] = WORD_OF(numa_node, 1),
    [ATTR_MPS_ENABLED] = ALWAYS(0),
    [ATTR_HOST_NUMA_ID] = {.source = FROM_AFFINITY},
    [ATTR_D3D12_CIG_SUPPORTED] = ALWAYS(0),
    [ATTR_GPU_PCI_DEVICE_ID] = WORD_OF(pci_device_id, 1),
    [ATTR_GPU_PCI_SUBSYSTEM_ID] = WORD_OF(pci_subsystem_id, 1),
    [ATTR_D3D12_CIG_STREAMS_SUPPORTED] = ALWAYS(0),
};

static CUresult read_word(nvmlDevice_t handle, size_t at, unsigned int *value)
{
    return sn_result(sn_get_word(handle, at, value));
}

/* A word, or `without` where the board has none. */
static CUresult read_word_or(nvmlDevice_t handle, size_t at, unsigned int without, unsigned int *value)
{
    CUresult code = read_word(handle, at, value);

    if (code != CUDA_ERROR_NOT_SUPPORTED)
        return code;
    *value = without;
    return CUDA_SUCCESS;
}

static CUresult read_limit(nvmlDevice_t handle, size_t at, int *value)
{
    const struct sn_capability *capability;
    unsigned int major;
    unsigned int minor;
    CUresult code = sn_result(sn_get_pair(handle, offsetof(struct sn_device, compute_capability_major),
                                          offsetof(struct sn_device, compute_capability_minor), &major, &minor));

    if (code != CUDA_SUCCESS)
        return code;
    capability = sn_capability(major, minor);
    if (capability == NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(value, (const char *)capability + at, sizeof(*value));
    return *value == SN_LIMIT_NOT_KNOWN ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* SUCCESS while the device is there. */
static CUresult check(nvmlDevice_t handle)
{
    nvmlReturn_t code = sn_refuse_device(handle);

    return code == NVML_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : sn_result(code);
}

/* The first node of the mask; -1 where the host has no NUMA. */
static CUresult read_affinity(nvmlDevice_t handle, int *value)
{
    unsigned long nodes[NODE_WORDS];
    nvmlReturn_t code = nvmlDeviceGetMemoryAffinity(handle, NODE_WORDS, nodes, 0);

    *value = -1;
    if (code != NVML_SUCCESS)
        return code == NVML_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : sn_result(code);
    for (int node = 0; *value < 0 && node < NODE_WORDS * NODE_BITS; node++)
        if (nodes[node / NODE_BITS] >> node % NODE_BITS & 1)
            *value = node;
    return CUDA_SUCCESS;
}

static CUresult apply(const struct rule *rule, nvmlDevice_t handle, int *value)
{
    unsigned int word = 0;
    CUresult code = CUDA_SUCCESS;

    switch (rule->source) {
    case FROM_NOWHERE:
        *value = rule->value;
        return check(handle);
    case FROM_WORD:
        code = read_word(handle, rule->at, &word);
        *value = (int)word * rule->value;
        return code;
    case FROM_CAPABILITY:
        return read_limit(handle, rule->at, value);
    case FROM_MAJOR:
        code = read_word(handle, offsetof(struct sn_device, compute_capability_major), &word);
        *value = word >= rule->at ? rule->value : rule->before;
        return code;
    case FROM_SWITCH:
        code = read_word_or(handle, rule->at, 0, &word);
        *value = (int)word;
        return code;
    case FROM_ADDRESSING:
        code = read_word_or(handle, offsetof(struct sn_device, addressing_mode), NO_ADDRESSING, &word);
        *value = (int)word >= rule->value;
        return code;
    case FROM_NUMA_NODE:
        code = read_word(handle, offsetof(struct sn_device, numa_node), &word);
        *value = code == CUDA_SUCCESS;
        return code == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : code;
    case FROM_AFFINITY:
        return read_affinity(handle, value);
    case NOT_KNOWN:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult get(int *value, int attribute, CUdevice device)
{
    nvmlDevice_t handle;
    int found = 0;
    CUresult code = sn_device(device, &handle);

    if (code != CUDA_SUCCESS)
        return code;
    if (value == NULL || attribute <= 0 || attribute >= ATTR_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    code = apply(&rules[attribute], handle, &found);
    if (code == CUDA_SUCCESS)
        *value = found;
    return code;
}

CUDA_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    return get(value, attribute, device);
}

CUDA_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    int values[2];
    CUresult code = get(&values[0], ATTR_COMPUTE_CAPABILITY_MAJOR, device);

    if (code == CUDA_SUCCESS)
        code = get(&values[1], ATTR_COMPUTE_CAPABILITY_MINOR, device);
    if (code == CUDA_SUCCESS && (major == NULL || minor == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        *major = values[0];
        *minor = values[1];
    }
    return code;
}

/* CUdevprop: ten properties, which have been attributes since CUDA 5. */
CUDA_EXPORT CUresult cuDeviceGetProperties(int properties[14], CUdevice device)
{
    static const int attributes[14] = {
        ATTR_MAX_THREADS_PER_BLOCK, ATTR_MAX_BLOCK_DIM_X,        ATTR_MAX_BLOCK_DIM_Y,
        ATTR_MAX_BLOCK_DIM_Z,       ATTR_MAX_GRID_DIM_X,         ATTR_MAX_GRID_DIM_Y,
        ATTR_MAX_GRID_DIM_Z,        ATTR_MAX_SHARED_MEMORY_PER_BLOCK, ATTR_TOTAL_CONSTANT_MEMORY,
        ATTR_WARP_SIZE,             ATTR_MAX_PITCH,              ATTR_MAX_REGISTERS_PER_BLOCK,
        ATTR_CLOCK_RATE,            ATTR_TEXTURE_ALIGNMENT,
    };
    int values[14];
    CUresult code = CUDA_SUCCESS;

    for (unsigned int i = 0; code == CUDA_SUCCESS && i < 14; i++)
        code = get(&values[i], attributes[i], device);
    if (code == CUDA_SUCCESS && properties == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        memcpy(properties, values, sizeof(values));
    return code;
}
