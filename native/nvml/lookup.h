/* Devices by their PCI address. */
#ifndef SN_LOOKUP_H
#define SN_LOOKUP_H

#include <stdbool.h>

#include "abi.h"

/* A PCI address as text or struct says it. */
struct sn_address {
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int function;
};

/* Parses [domain:]bus:device[.function], hexadecimal digits of any case and number; false if it is no such text. */
bool sn_parse_address(const char *text, struct sn_address *address);
/* The address of a visible index, of a lost device too; INVALID_ARGUMENT if there is no such index. */
nvmlReturn_t sn_address_of_index(unsigned int visible, struct sn_address *address);
/* The image index of a visible device by its address, or SN_NO_DEVICE. */
unsigned int sn_device_at(const struct sn_address *address);

#endif
