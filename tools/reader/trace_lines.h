/* trace_lines.h — the trace of decisions in a file → whole lines.
 * In: a ring as snapshot.h has it, which may be written to meanwhile, and is not trusted. Out: lines that are what they
 * were when they were written, each a JSON object. */
#ifndef MEMSTOW_TRACE_LINES_H
#define MEMSTOW_TRACE_LINES_H

#include "preload/shared/jsontext.h"
#include "tools/image/image.h"
#include "tools/reader/reader.h"

/* Fills in image->trace: a ring that is just full, of whole lines. 0 or -1. */
int trace_lines_load(struct reader *reader);

struct trace_line {
    uint64_t number;
    struct jsontext object;
};
/* The next line; false at the end. Begin with *at = 0. */
bool trace_lines_next(const struct image *image, size_t *at, struct trace_line *line);

#endif
