/* A document that can be told in two ways: as XML, or as indented lines with a label and a value each.
 *
 * Whoever tells it names each thing twice, by its XML element and by its label; what has no name in the one form is left
 * out of it. */
#ifndef SN_DOCUMENT_H
#define SN_DOCUMENT_H

#include <stdbool.h>

struct page {
    bool xml;
    unsigned int depth;  /* what is open, in this form */
    unsigned int column; /* of the colon between label and value */
};

/* A group whose label is empty makes what is in it lie deeper, and has no line of its own. */
void page_open(struct page *page, const char *xml, const char *text);
void page_close(struct page *page, const char *xml, const char *text);
void page_leaf(const struct page *page, const char *xml, const char *text, const char *value);
/* The value's special characters as XML's entities; `out` has `size` bytes, and what does not fit is cut off. */
void page_escape(const char *value, char *out, unsigned int size);

#endif
