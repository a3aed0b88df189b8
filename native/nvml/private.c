/* The table behind nvmlInternalGetExportTable, through which nvidia-smi asks what the public interface does not tell.
 *
 * Word 0 is the table's size in bytes; slot n is the function in word n. Slots were found by watching what the screens
 * of nvidia-smi 535, 550 and 555 show; a slot whose meaning differs between them is told by its own arguments or serves
 * both. A slot that is not known answers NOT_SUPPORTED and writes nothing, for its arguments may be any register's
 * leftovers. */
#define _GNU_SOURCE
#include "lookup.h"
#include "pci.h"
#include "private.h"
#include "setters.h"
#include "thermal.h"

#define SLOTS 256

/* Public functions that slots are, or ask. */
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy, nvmlViolationTime_t *time);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2, unsigned int *level);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                         unsigned int scope);

typedef nvmlReturn_t slot_fn(void);

static nvmlReturn_t unknown_slot(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}

/* 26: nvidia-smi's own log; 184, 225: ends of conversations. */
static nvmlReturn_t ignored(void)
{
    return NVML_SUCCESS;
}

/* 12 */
static nvmlReturn_t parse_bus_id(const char *text, unsigned int *domain, unsigned int *bus, unsigned int *device,
                                 unsigned int *function)
{
    struct sn_address address;

    if (text == NULL || !sn_parse_address(text, &address))
        return NVML_ERROR_INVALID_ARGUMENT;
    *domain = address.domain;
    *bus = address.bus;
    *device = address.device;
    *function = address.function;
    return NVML_SUCCESS;
}

static unsigned int device_named(const char *bus_id)
{
    struct sn_address address;

    return sn_parse_address(bus_id, &address) ? sn_device_at(&address) : SN_NO_DEVICE;
}

enum { LEVEL_PIX, LEVEL_PXB, LEVEL_PHB, LEVEL_NODE, LEVEL_SYS };

/* 23: the PCIe level between two bus ids; an error would end the whole matrix. */
static nvmlReturn_t pcie_level(const char *first, const char *second, unsigned int *level)
{
    unsigned int a = device_named(first);
    unsigned int b = device_named(second);
    unsigned int ancestor;

    *level = LEVEL_SYS;
    if (a == SN_NO_DEVICE || b == SN_NO_DEVICE ||
        nvmlDeviceGetTopologyCommonAncestor(sn_handle(a), sn_handle(b), &ancestor) != NVML_SUCCESS)
        return NVML_SUCCESS;
    switch (ancestor) {
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SINGLE:
        *level = LEVEL_PIX;
        break;
    case NVML_TOPOLOGY_MULTIPLE:
        *level = LEVEL_PXB;
        break;
    case NVML_TOPOLOGY_HOSTBRIDGE:
        *level = LEVEL_PHB;
        break;
    case NVML_TOPOLOGY_NODE:
        *level = LEVEL_NODE;
        break;
    default:
        *level = LEVEL_SYS;
        break;
    }
    return NVML_SUCCESS;
}

/* 72: whether monitoring (dmon, pmon) is possible. */
static nvmlReturn_t can_be_monitored(nvmlDevice_t device, unsigned int *yes)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    *yes = 1;
    return NVML_SUCCESS;
}

/* 75: of a lost device, too; whoever names one by its bus id learns that it is lost. */
static nvmlReturn_t address_of_index(unsigned int index, unsigned int *domain, unsigned int *bus, unsigned int *device)
{
    struct sn_address address;
    nvmlReturn_t code = sn_address_of_index(index, &address);

    if (code != NVML_SUCCESS)
        return code;
    *domain = address.domain;
    *bus = address.bus;
    *device = address.device;
    return NVML_SUCCESS;
}

/* 81: the bus id of an index as text, for messages. */
nvmlReturn_t sn_bus_id_of_index(unsigned int index, char *out, unsigned int length)
{
    struct sn_address address;
    char text[32];
    nvmlReturn_t code = sn_address_of_index(index, &address);

    if (code != NVML_SUCCESS)
        return code;
    sn_put_bus_id(text, address.domain, address.bus, address.device);
    return sn_put_text(text, out, length);
}

/* 108 */
static nvmlReturn_t enforced_power_limit(nvmlDevice_t device, unsigned int *mw)
{
    return sn_get_word(device, offsetof(struct sn_device, power_enforced_limit_mw), mw);
}

/* 138: as much of a violation time as dmon compares with what it saw before. */
static nvmlReturn_t thermal_violation(nvmlDevice_t device, nvmlViolationTime_t *time)
{
    return nvmlDeviceGetViolationStatus(device, NVML_PERF_POLICY_THERMAL, time);
}

enum { INTERNAL_RESET_REQUIRED = 4, INTERNAL_DRAIN_RECOMMENDED = 5 };

/* 165: internal field values in public entries: 1 relaxed ordering, which no board has; 4 and 5 the reset state. */
static nvmlReturn_t internal_fields(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    nvmlReturn_t code = sn_refuse_device(device);

    if (code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    for (int i = 0; i < count; i++) {
        unsigned int value = 0;
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        if (values[i].fieldId == INTERNAL_RESET_REQUIRED)
            values[i].nvmlReturn = sn_get_word(device, offsetof(struct sn_device, gpu_reset_required), &value);
        if (values[i].fieldId == INTERNAL_DRAIN_RECOMMENDED)
            values[i].nvmlReturn = sn_get_word(device, offsetof(struct sn_device, gpu_reset_drain_recommended), &value);
        values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        values[i].value.ullVal = value;
    }
    return NVML_SUCCESS;
}

struct atomic_capabilities {
    unsigned int outbound;
    unsigned int inbound;
};

/* 226 */
static nvmlReturn_t atomics(nvmlDevice_t device, struct atomic_capabilities *capabilities)
{
    return sn_get_pair(device, offsetof(struct sn_device, pcie_atomic_caps_outbound),
                       offsetof(struct sn_device, pcie_atomic_caps_inbound), &capabilities->outbound,
                       &capabilities->inbound);
}

/* 230 */
static nvmlReturn_t host_max_link_generation(nvmlDevice_t device, unsigned int *generation)
{
    return sn_get_word(device, offsetof(struct sn_device, pcie_host_max_link_gen), generation);
}

/* 231 */
static nvmlReturn_t gpu_part_number(nvmlDevice_t device, char *out, unsigned int length)
{
    return sn_get_text(device, offsetof(struct sn_device, gpu_part_number),
                       sizeof(((struct sn_device *)0)->gpu_part_number.value), out, length);
}

/* 237 */
static nvmlReturn_t gpu_fru_part_number(nvmlDevice_t device, char *out, unsigned int length)
{
    return sn_get_text(device, offsetof(struct sn_device, gpu_fru_part_number),
                       sizeof(((struct sn_device *)0)->gpu_fru_part_number.value), out, length);
}

/* 241 in 535 */
static nvmlReturn_t numa_node(nvmlDevice_t device, unsigned int *node)
{
    return sn_get_word(device, offsetof(struct sn_device, numa_node), node);
}

/* 242 */
static nvmlReturn_t addressing_mode(nvmlDevice_t device, unsigned int *mode)
{
    return sn_get_word(device, offsetof(struct sn_device, addressing_mode), mode);
}

/* 243 in 535, 249 since 550 */
static nvmlReturn_t sparse_operation_mode(nvmlDevice_t device, unsigned int *mode)
{
    return sn_get_word(device, offsetof(struct sn_device, sparse_operation_mode), mode);
}

static const struct {
    unsigned int slot;
    slot_fn *function;
} known[] = {
    {12, (slot_fn *)(void *)parse_bus_id},
    {23, (slot_fn *)(void *)pcie_level},
    {20, (slot_fn *)(void *)sn_private_is_primary},
    {26, ignored},
    {72, (slot_fn *)(void *)can_be_monitored},
    {75, (slot_fn *)(void *)address_of_index},
    {81, (slot_fn *)(void *)sn_bus_id_of_index},
    {108, (slot_fn *)(void *)enforced_power_limit},
    {138, (slot_fn *)(void *)thermal_violation},
    {145, (slot_fn *)(void *)sn_private_utilization},
    {165, (slot_fn *)(void *)internal_fields},
    {168, (slot_fn *)(void *)sn_private_reset},
    {169, (slot_fn *)(void *)sn_private_reset_fabric},
    {182, (slot_fn *)(void *)sn_private_reset_group},
    {183, (slot_fn *)(void *)sn_private_reset_members},
    {184, ignored},
    {192, (slot_fn *)(void *)sn_private_set_policy},
    {193, (slot_fn *)(void *)sn_private_policies},
    {194, (slot_fn *)(void *)sn_private_slider_limits},
    {195, (slot_fn *)(void *)sn_private_sliders},
    {196, (slot_fn *)(void *)sn_private_set_slider},
    {213, (slot_fn *)(void *)sn_private_compute},
    {214, (slot_fn *)(void *)sn_private_mps},
    {215, (slot_fn *)(void *)sn_private_graphics},
    {223, (slot_fn *)(void *)nvmlDeviceGetMemoryAffinity},
    {225, ignored},
    {226, (slot_fn *)(void *)atomics},
    {230, (slot_fn *)(void *)host_max_link_generation},
    {231, (slot_fn *)(void *)gpu_part_number},
    {237, (slot_fn *)(void *)gpu_fru_part_number},
    {240, (slot_fn *)(void *)sn_get_margin},
    {241, (slot_fn *)(void *)numa_node},
    {242, (slot_fn *)(void *)addressing_mode},
    {243, (slot_fn *)(void *)sparse_operation_mode},
    {244, (slot_fn *)(void *)sn_set_sparse_operation_mode}, /* in 535 */
    {249, (slot_fn *)(void *)sparse_operation_mode},
    {250, (slot_fn *)(void *)sn_set_sparse_operation_mode}, /* since 550 */
    {251, (slot_fn *)(void *)nvmlDeviceSetPersistenceMode}, /* in 555 */
};

/* Filled by the first request, its size last. Several at once fill in the same words, so that it needs no lock. */
static union {
    size_t size;
    slot_fn *slot;
} table[SLOTS];

static void fill_table(void)
{
    for (unsigned int i = 1; i < SLOTS; i++)
        if (table[i].slot == NULL)
            table[i].slot = unknown_slot;
    for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        table[known[i].slot].slot = known[i].function;
    __atomic_store_n(&table[0].size, sizeof(table), __ATOMIC_RELEASE);
}

NVML_EXPORT nvmlReturn_t nvmlInternalGetExportTable(const void **out, const unsigned char guid[16])
{
    static const unsigned char served[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                             0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

    if (out == NULL || guid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memcmp(guid, served, sizeof(served)) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (__atomic_load_n(&table[0].size, __ATOMIC_ACQUIRE) == 0)
        fill_table();
    *out = table;
    return NVML_SUCCESS;
}
