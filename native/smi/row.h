/* A line of a table: a frame, and cells laid into it that never move what stands beside them. */
#ifndef SN_ROW_H
#define SN_ROW_H

#define ROW_BYTES 91

struct row {
    char text[ROW_BYTES + 1];
};

void row_start(struct row *row, const char *frame);
/* Lays a text over `width` bytes from `at`; one that is longer is cut and ends in dots. */
void row_put(struct row *row, unsigned int at, unsigned int width, const char *text);
void row_format(struct row *row, unsigned int at, unsigned int width, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void row_print(const struct row *row);

#endif
