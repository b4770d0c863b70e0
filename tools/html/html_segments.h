/* html_segments.h — the segments (pieces of call stacks) of a page, each stored once.
 * In: the lines of a segment, the outermost first. Out: the number of the segment. Segments with the same lines have
 * the same number. */
#ifndef MEMSTOW_HTML_SEGMENTS_H
#define MEMSTOW_HTML_SEGMENTS_H

#include "tools/base/slots.h"
#include "tools/html/html_out.h"

struct html_segments {
    uint32_t *end, *words; /* words: the lines of all segments; end: where each segment ends in `words` */
    size_t count, capacity, word_count, word_capacity;
    struct slots slots; /* by content */
};

/* Finds the segment that has these lines, or adds it, and sets *number to its number. False: there is no memory. */
bool html_segments_number(struct html_segments *self, const uint32_t *lines, size_t count, uint32_t *number);
/* Forgets all segments. */
void html_segments_clear(struct html_segments *self);
void html_segments_end(struct html_segments *self);
/* Writes the group "segments". `line_count`: the number of all lines. Returns 0, or -1: no memory. */
int html_segments_write(const struct html_segments *self, size_t line_count, struct html_out *out);

#endif
