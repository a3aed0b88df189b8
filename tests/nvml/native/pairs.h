/*
 * What a publish of the tests holds and what its readers expect of it: everything follows from one number x, the node's
 * generation (see tests/nvml/nodes.py), so that anything taken from another publish shows.
 */
#ifndef PAIRS_H
#define PAIRS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvml/rules.h"

#define TRIES 1000
#define COUNTERS 3
#define PROCESSES 7

static inline void *map_file(const char *path, size_t size, int writable)
{
    int fd = open(path, writable ? O_RDWR : O_RDONLY);
    void *map = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

    if (fd < 0 || map == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(fd);
    return map;
}

int sn_publish_open(struct sn_image *image);
uint64_t sn_publish(struct sn_image *image, const struct sn_node *wanted, const struct sn_device *const device[],
                    uint64_t settled, const char *boot_id);

/* Publishes an encoded node in one piece: its record, then those of its devices. */
static inline uint64_t publish_blob(struct sn_image *image, const void *blob, const char *boot_id)
{
    const struct sn_node *node = blob;
    const struct sn_device *records = (const struct sn_device *)(node + 1), *device[SN_MAX_DEVICES];

    for (uint32_t i = 0; i < node->device_count; i++)
        device[i] = &records[i];
    return sn_publish(image, node, device, 0, boot_id);
}

/* What one consistent read takes of the image. */
struct pairs {
    uint64_t x;
    uint32_t count;
    uint32_t last_word;
    struct sn_word word;
    struct sn_word refused;
    struct sn_wide wide;
    char serial[32];
    uint32_t processes;
    uint32_t pid[PROCESSES];
};

/* The number of tries it took, or TRIES. */
static inline int read_pairs(const struct sn_image *image, struct pairs *out)
{
    for (int tries = 1; tries < TRIES; tries++) {
        uint64_t number = sn_done(image);
        const struct sn_slot *slot = sn_slot_of(image, number);
        const struct sn_device *first = &slot->device[0];

        out->x = slot->node.generation;
        out->count = slot->node.device_count;
        out->word = first->pcie_replay_counter;
        out->wide = first->bar1_memory_used_bytes;
        out->refused = first->remapped_rows_pending;
        memcpy(out->serial, first->serial.value, sizeof(out->serial));
        out->processes = first->process_count;
        for (size_t i = 0; i < PROCESSES; i++)
            out->pid[i] = first->process[i].pid;
        out->last_word = slot->device[(out->count - 1) % SN_MAX_DEVICES].pcie_replay_counter.value;
        if (sn_whole(image, number))
            return tries;
    }
    return TRIES;
}

static inline int pairs_agree(const struct pairs *p)
{
    uint32_t x = (uint32_t)p->x;

    if (p->word.value != x || p->word.status != 0 || p->last_word != x || p->count == 0)
        return 0;
    if (p->wide.value != x * UINT64_C(0x9E3779B9) || p->wide.status != 0)
        return 0;
    if (x % 2 ? p->refused.status != 3 || p->refused.value != 0 : p->refused.status != 0 || p->refused.value != x)
        return 0;
    if (strtoull(p->serial, NULL, 10) != p->x || p->processes != x % (PROCESSES + 1))
        return 0;
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (p->pid[i] != (i < p->processes ? x : 0))
            return 0;
    return 1;
}

/* Energy, the traffic of a link, a throttle counter of device 0; returns the tries. */
static inline int read_counter(const struct sn_image *image, int which, uint64_t *value)
{
    for (int tries = 1; tries < TRIES; tries++) {
        uint64_t number = sn_done(image);
        const struct sn_slot *slot = sn_slot_of(image, number);
        const struct sn_device *device = &slot->device[0];
        const struct sn_counter *counters[COUNTERS] = {
            &device->power_total_energy_consumption_mj,
            &device->link[0].tx_kib,
            &device->clocks_throttle_reasons_counters_sw_power_cap_us,
        };

        *value = sn_counter_at(counters[which], &device->curve, &device->old_curve, sn_counter_time(slot, sn_clock()));
        if (sn_whole(image, number))
            return tries;
    }
    return TRIES;
}

#endif
