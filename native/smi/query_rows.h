/* nvidia-smi -q: one table of everything it tells of a GPU, for both forms and for every driver. */
#ifndef SN_QUERY_ROWS_H
#define SN_QUERY_ROWS_H

#include "../nvml/processes.h"
#include "document.h"
#include "smi.h"

#define QUERY_VALUE_BYTES 1536

/* What -d selects. ASKED: without -d, lines leave it out; XML has it. */
enum {
    ASKED = 1 << 0,
    MEMORY = 1 << 1,
    UTILIZATION = 1 << 2,
    ECC = 1 << 3,
    TEMPERATURE = 1 << 4,
    POWER = 1 << 5,
    CLOCK = 1 << 6,
    COMPUTE = 1 << 7,
    PIDS = 1 << 8,
    PERFORMANCE = 1 << 9,
    SUPPORTED_CLOCKS = 1 << 10,
    PAGE_RETIREMENT = 1 << 11,
    ACCOUNTING = 1 << 12,
    ENCODER_STATS = 1 << 13,
    SUPPORTED_GPU_TARGET_TEMP = 1 << 14,
    VOLTAGE = 1 << 15,
    FBC_STATS = 1 << 16,
    ROW_REMAPPER = 1 << 17,
    RESET_STATUS = 1 << 18,
    GSP_FIRMWARE_VERSION = 1 << 19,
    POWER_SMOOTHING = 1 << 20,
    POWER_PROFILES = 1 << 21
};

/* What a GPU has, where GPUs differ: the layout of error counts and of temperature thresholds, a part as host. */
enum {
    ECC_BY_LOCATION = 1 << 0,
    ECC_SUMMED = 1 << 1,
    ECC_SPLIT = 1 << 2,
    LIMITS_RELATIVE = 1 << 3,
    LIMITS_ABSOLUTE = 1 << 4,
    VGPU_HOST = 1 << 5
};

/* The device that is told of, or a process on it. */
struct subject {
    nvmlDevice_t device;
    unsigned int driver;
    unsigned int traits;
    bool ecc_on;
    const struct sn_process *process;
    unsigned int process_types;
};

struct element;

/* Puts the value's text into `out`, which has QUERY_VALUE_BYTES; else why there is none. */
typedef nvmlReturn_t query_read(const struct subject *subject, const struct element *element, char *out);
typedef void query_show(const struct subject *subject, const struct element *element, uint64_t value, char *out);
/* Tells the element and whatever is in it. */
typedef void query_list(struct page *page, const struct subject *subject, const struct element *element);

/* A row of the table: a value, or a group with the deeper rows that follow. One of its sources tells the value; a group's
 * tells whether there is one, and a refusal stands in its place. Drivers are numbers, 550163 for 550.163; 0 is no
 * bound. */
struct element {
    unsigned char depth;
    const char *xml;
    const char *text;
    /* Sources. */
    query_read *read;
    query_list *list;
    nvmlReturn_t (*name)(nvmlDevice_t device, char *out, unsigned int length);
    nvmlReturn_t (*word)(nvmlDevice_t device, unsigned int *value);
    nvmlReturn_t (*word_of)(nvmlDevice_t device, unsigned int which, unsigned int *value);
    nvmlReturn_t (*pair)(nvmlDevice_t device, unsigned int *first, unsigned int *second); /* which: 0 or 1 */
    nvmlReturn_t (*fill)(nvmlDevice_t device, void *structure); /* of which `kind` at `which` is the value */
    unsigned int field;                                         /* an id, for `scope` */
    size_t cell;                                                /* of `kind`, an offset in the image */
    size_t text_cell;                                           /* with `which` bytes */
    enum sn_kind kind;
    unsigned int which;
    unsigned int scope;
    /* How the value is written. */
    const char *const *words; /* by value; the last one is also for those beyond */
    const char *format;
    query_show *show;
    bool hexadecimal; /* lines write it with 0x */
    /* Where it is told. */
    unsigned int since;
    unsigned int before;
    unsigned int deprecated;
    unsigned int sections;
    unsigned int traits;
};

/* Rows up to one that has no depth. A GPU's are in three parts, told one after the other. */
extern const struct element query_board[];
extern const struct element query_work[];
extern const struct element query_energy[];
extern const struct element query_mig[];
extern const struct element query_process[];

/* Tells the rows of the table that there are: with `sections`, those that -d named. */
void query_walk(struct page *page, const struct element *table, const struct subject *subject,
                const unsigned int *sections);
/* The value as text, of QUERY_VALUE_BYTES. */
nvmlReturn_t query_read_value(const struct subject *subject, const struct element *element, char *out);
/* Writes a value as the row wants it. */
void query_put(const struct subject *subject, const struct element *element, uint64_t value, char *out);

#endif
