/* The columns of the csv views: what they are called, where their values come from, how these are written. */
#ifndef SN_SMI_COLUMNS_H
#define SN_SMI_COLUMNS_H

#include "smi.h"

#define SMI_CELL_BYTES 512

/* One thing of those that a device has several of, as far as its kind tells of it. */
struct smi_item {
    nvmlReturn_t code; /* not SUCCESS: why there is nothing to tell */
    unsigned int pid;
    unsigned int cause; /* of a page's retirement */
    unsigned int memory_mhz;
    unsigned int graphics_mhz;
    unsigned long long address;
    unsigned long long time;
    unsigned long long used_bytes;
};

/* What a row is about. */
struct smi_row {
    nvmlDevice_t device;
    const struct smi_item *item; /* or null */
};

typedef nvmlReturn_t smi_word_fn(nvmlDevice_t device, unsigned int *out);
typedef nvmlReturn_t smi_number_fn(nvmlDevice_t device, unsigned int which, unsigned long long *out);
typedef nvmlReturn_t smi_text_fn(const struct smi_row *row, unsigned int which, char out[SMI_CELL_BYTES]);
typedef void smi_style_fn(unsigned long long number, char out[SMI_CELL_BYTES]);

/* One of word, number and text tells the value, the first two in a style. */
struct smi_column {
    const char *name;
    const char *alias; /* or null */
    const char *unit;  /* or null */
    unsigned int since; /* the driver's release that has it, or 0 */
    smi_style_fn *style;
    smi_word_fn *word;
    smi_number_fn *number;
    smi_text_fn *text;
    unsigned int which; /* for number and text */
};

/* The things of one kind that a device has. */
struct smi_rows {
    unsigned int count;
    struct smi_item *items; /* from malloc, or null */
};

struct smi_query {
    const struct smi_column *columns;
    size_t count;
    void (*rows)(nvmlDevice_t device, struct smi_rows *rows); /* null: a row for each device */
};

extern const struct smi_column smi_gpu_columns[];
extern const size_t smi_gpu_column_count;

/* Ways to write a number. */
smi_style_fn smi_decimal;
smi_style_fn smi_signed;
smi_style_fn smi_hex;
smi_style_fn smi_hex2;
smi_style_fn smi_hex4;
smi_style_fn smi_hex16;
smi_style_fn smi_enabled;
smi_style_fn smi_on;
smi_style_fn smi_one;
smi_style_fn smi_yes;
smi_style_fn smi_watts;
smi_style_fn smi_watts_drawn;
smi_style_fn smi_mebibytes;
smi_style_fn smi_performance_state;
smi_style_fn smi_compute_mode;
smi_style_fn smi_addressing_mode;
smi_style_fn smi_operation_mode;
smi_style_fn smi_recovery_action;
smi_style_fn smi_peer_type;

#endif
