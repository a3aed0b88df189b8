/* The command line of nvidia-smi, but for topo and nvlink, which read their own. */
#ifndef SN_SMI_OPTIONS_H
#define SN_SMI_OPTIONS_H

#include <stdbool.h>

/* What a query in csv asks about. */
enum smi_subject {
    SMI_NONE,
    SMI_GPU,
    SMI_COMPUTE_APPS,
    SMI_ACCOUNTED_APPS,
    SMI_SUPPORTED_CLOCKS,
    SMI_RETIRED_PAGES,
    SMI_REMAPPED_ROWS,
};

/* What the arguments say; texts point into them. Of an option that stands there twice the last value counts. */
struct smi_options {
    bool query;            /* -q */
    bool xml;              /* -x */
    bool unit;             /* -u */
    const char *display;   /* -d, or null */
    const char *ids;       /* -i, or null */
    const char *filename;  /* -f, or null */
    bool looping;          /* -l or -lms */
    unsigned int loop_ms;  /* how often; 0 is refused */
    enum smi_subject help; /* --help-query-… */
    enum smi_subject subject;
    const char *fields; /* of the subject */
    const char *format; /* --format, or null */
};

/* Fills `options` from the arguments after the program's name, in which it cuts options from their values. 0, or the
 * exit code after a line that says what is wrong. */
int smi_read_options(int count, char **arguments, struct smi_options *options);

#endif
