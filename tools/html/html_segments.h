/* html_segments.h — the pieces of stack of a page, each stored once.
 * In: lines, from the outside. Out: the number of their segment; equal lines have the same. */
#ifndef MEMSTOW_HTML_SEGMENTS_H
#define MEMSTOW_HTML_SEGMENTS_H

#include "tools/base/slots.h"
#include "tools/html/html_out.h"

struct html_segments {
    uint32_t *end, *words; /* the lines of all segments; a segment begins at the end of the previous one */
    size_t count, capacity, word_count, word_capacity;
    struct slots slots; /* by content */
};

/* False: there is no memory. */
bool html_segments_number(struct html_segments *self, const uint32_t *lines, size_t count, uint32_t *number);
/* Forgets all segments. */
void html_segments_clear(struct html_segments *self);
void html_segments_end(struct html_segments *self);
/* Writes the group "segments". `line_count`: the number of all lines. Returns 0, or -1: no memory. */
int html_segments_write(const struct html_segments *self, size_t line_count, struct html_out *out);

#endif
