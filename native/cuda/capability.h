/* What follows from a compute capability alone: the technical specifications in the CUDA programming guide. */
#ifndef SN_CAPABILITY_H
#define SN_CAPABILITY_H

#define SN_LIMIT_NOT_KNOWN (-1)

struct sn_capability {
    unsigned int major;
    unsigned int minor;
    int threads_per_multiprocessor;
    int blocks_per_multiprocessor;
    int shared_per_multiprocessor; /* bytes */
    int shared_per_block_at_most;  /* bytes, opted in to */
    int shared_reserved_per_block; /* bytes */
    int single_to_double_ratio;    /* floating point throughput */
};

/* Null for a capability that the guide does not know, or that no simulated board has. */
const struct sn_capability *sn_capability(unsigned int major, unsigned int minor);

#endif
